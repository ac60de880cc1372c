// The rooms of one rank around their machines: attempts that follow each other, and what is remembered.
#include "actors/decode/sink_rooms.hpp"
#include "actors/transfer_engine/room_frames.hpp"
#include "tests/actors/machines/bare_source.hpp"

#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

constexpr room_id room{7};

/// The sink rooms of one rank; keeps what the engine hears.
struct bare_sink final : fabric_port {
  struct events final : event_port {
    void push(room_side, const queued_event& e) override {
      if (!said.empty()) said += "; ";
      said += e.event.what == room_event::kind::released ? std::string("released")
                                                         : std::string(to_string(e.event.poll));
      if (e.event.code != errc::ok) said += fmt::format("({})", to_string(e.event.code));
      said += fmt::format(" {}", e.event.key.attempt.value);
    }
    void flush(room_side) override {}
    bool backlogged(room_side) const override { return false; }
    std::string said;
  };
  void submit(submit_call) override {}
  void send(frame_call call) override { frames.push_back(std::move(call.message)); }
  void connect(connect_call) override {}
  void fence(fence_call) override {}

  bare_sink() : rows(16 * row_schema::row_bytes), kept(std::make_shared<events>()) {
    rooms = std::make_unique<sink_rooms>(
        sink_rooms_settings{r.sink, {r.layout, kept, rows, 16, 8, 8, 60s, {}}, {}}, *this);
  }
  template <class Call>
  std::string tell(Call call, duration when = 1s) {
    kept->said.clear();
    rooms->handle(call, at(when));
    return kept->said;
  }

  rig r;
  std::vector<std::byte> rows;
  std::shared_ptr<events> kept;
  std::unique_ptr<sink_rooms> rooms;
  std::vector<room_message> frames;
};

}  // namespace

TEST_CASE("source rooms: a newer attempt waits for the last write of the older one, and then opens") {
  bare_source s;
  constexpr room_key first{room, {1}}, second{room, {2}};
  s.offer(room);
  s.announce(first, "sink", 1);
  s.publish(first, "sink");
  s.hold();
  s.send(room, 0, 8);
  CHECK(s.take_said() == "write 4>1");
  s.announce(second, "sink", 1);
  s.publish(second, "sink");
  CHECK(s.take_said() == "abort(room_superseded)>1");  // no `drained` while a write is under way
  CHECK(s.verdict(room) == kv_poll::failed);
  s.announce(first, "sink", 1);  // an older attempt's word finds the end
  CHECK(s.take_said() == "abort(room_superseded)>1");
  s.deliver();
  CHECK(s.take_said() == "drained>1");
  CHECK(s.baseline());

  s.offer(room);
  CHECK(s.verdict(room) == kv_poll::waiting_for_input);
  s.send(room, 0, tokens);
  CHECK(s.take_said() == "write 4>1+done");
  s.deliver();
  s.confirm(first, "sink", false);  // late, of the older attempt
  CHECK(s.verdict(room) == kv_poll::transferring);
  s.confirm(second, "sink", true);
  CHECK(s.verdict(room) == kv_poll::success);
  CHECK(s.baseline());
}

TEST_CASE("source rooms: an abort of the attempt that waits is remembered with it") {
  bare_source s;
  s.offer(room);
  s.announce({room, {1}}, "sink", 1);
  s.publish({room, {1}}, "sink");
  s.hold();
  s.send(room, 0, 8);
  s.announce({room, {2}}, "sink", 1);
  s.peer_abort({room, {2}}, "sink");
  s.deliver();
  CHECK(s.take_said() == "write 4>1; abort(room_superseded)>1; drained>1; drained>1");
  s.forget(room);
  s.offer(room);
  CHECK(s.verdict(room) == kv_poll::failed);
  CHECK(s.reason(room) == "client left");
  CHECK(s.baseline());
}

TEST_CASE("source rooms: a new offer does not adopt an attempt that has ended") {
  bare_source s;
  constexpr room_key first{room, {1}}, second{room, {2}};
  s.offer(room);
  s.announce(first, "sink", 1);
  s.peer_abort(first, "sink");
  CHECK(s.verdict(room) == kv_poll::failed);
  s.forget(room);
  s.offer(room);
  s.take_said();
  s.announce(first, "sink", 1);  // overtaken by their own abort
  s.publish(first, "sink");
  CHECK(s.take_said() == "abort(aborted)>1; abort(aborted)>1");
  CHECK(s.verdict(room) == std::nullopt);
  s.announce(second, "sink", 1);
  s.publish(second, "sink");
  CHECK(s.verdict(room) == kv_poll::waiting_for_input);
  s.send(room, 0, tokens);
  s.confirm(second, "sink", true);
  CHECK(s.verdict(room) == kv_poll::success);
  CHECK(s.baseline());
}

TEST_CASE("source rooms: an abort of the engine ahead of its room ends offer and sink, for a while") {
  bare_source s(120s, 60s);
  s.abort(room, "client left");
  s.announce({room, {1}}, "sink", 1);
  CHECK(s.take_said() == "abort(aborted)>1");
  s.advance(59s);
  s.offer(room);
  CHECK(s.verdict(room) == kv_poll::failed);
  CHECK(s.reason(room) == "client left");
  s.advance(60s);
  s.forget(room);
  s.offer(room);
  CHECK(s.verdict(room) == std::nullopt);
  s.abort(room, "");
  CHECK(s.baseline());
}

TEST_CASE("source rooms: a flood of announces for rooms that nobody offers is bounded") {
  bare_source s;
  for (std::uint64_t i = 0; i < 1000; ++i) s.announce({{1000 + i}, {1}}, "flood", 1);
  CHECK(s.open_rooms() == 64);
  s.take_heard();
  s.advance(121s);  // the unclaimed ones end by their own bound
  CHECK(s.open_rooms() == 0);
  s.offer(room);
  s.announce({room, {1}}, "sink", 1);
  s.publish({room, {1}}, "sink");
  s.send(room, 0, tokens);
  s.confirm({room, {1}}, "sink", true);
  CHECK(s.verdict(room) == kv_poll::success);
}

TEST_CASE("sink rooms: an abort of the engine ahead of its announce ends it") {
  bare_sink s;
  CHECK(s.tell(abort_call{room, {errc::aborted, "client left", {}}}) == "");
  CHECK(s.tell(announce_call{room, "prefill-0", ""}) == "failed(aborted) 1; released 1");
  CHECK(s.tell(announce_call{room, "prefill-0", ""}) == "");
  CHECK(s.tell(abort_call{room, {errc::aborted, "again", {}}}) == "failed(aborted) 2; released 2");
  CHECK(s.rooms->desk().gate.rooms() == 0);
}

TEST_CASE("source rooms: a room that is open is not taken by a second offer, however often") {
  bare_source s;
  constexpr room_key key{room, {1}};
  s.offer(room);
  s.announce(key, "sink", 1);
  s.publish(key, "sink");
  for (int i = 0; i < 1000; ++i) {
    s.offer(room);
    s.abort({8}, "of another room");
  }
  CHECK(s.duplicates() == 1000);
  CHECK(s.verdict(room) == kv_poll::waiting_for_input);
  CHECK(s.open_rooms() == 1);
  s.send(room, 0, tokens);
  s.confirm(key, "sink", true);
  CHECK(s.verdict(room) == kv_poll::success);
  CHECK(s.baseline());
}

TEST_CASE("sink rooms: a success stands that an abort meets; its row given up unread frees the slot") {
  bare_sink s;
  constexpr room_key key{room, {1}};
  s.tell(announce_call{room, "prefill-0", ""});
  s.tell(peer_up{s.r.prefill(), "prefill-0"});
  CHECK(s.tell(publish_call{room, rig::pages(10), tokens}) == "transferring 1");
  auto done = s.r.done(key);
  done.slot = std::get<publish_message>(s.frames.back()).slot;
  auto at_slot = done.slot.value * row_schema::row_bytes;
  write_row(std::span(s.rows).subspan(at_slot, row_schema::row_bytes), rig::row(), key);
  CHECK(s.tell(room_frame{s.r.prefill(), done}) == "success 1; released 1");
  CHECK(s.rooms->desk().slots.used() == 1);  // the row is the engine's until it took it
  CHECK(s.tell(abort_call{room, {errc::aborted, "client left", {}}}) == "");
  CHECK(read_row(std::span(s.rows).subspan(at_slot, row_schema::row_bytes), key));
  CHECK(s.rooms->desk().slots.used() == 1);
  CHECK(s.tell(commit_call{key, done.slot}) == "");
  CHECK(s.rooms->desk().slots.used() == 0);
  CHECK(s.rooms->desk().leases.counts() == lease_counts{});
}

TEST_CASE("sink rooms: what sources were not told is kept for them, bounded over all their names") {
  bare_sink s;
  auto untold = [&] {
    for (const auto& [name, count] : s.rooms->status().counts)
      if (name == "untold") return count;
    return UINT64_MAX;
  };
  auto fail_room = [&](std::uint64_t id, const std::string& source, duration when) {
    s.tell(announce_call{{id}, source, ""}, when);
    s.tell(connect_failed{source, {errc::peer_unknown, "nobody is there", {}}}, when);
  };
  for (std::uint64_t i = 0; i < 100; ++i) fail_room(i, fmt::format("nobody-{}", i), 1s);
  CHECK(untold() == 8);    // limits.rooms of this rank
  s.rooms->tick(at(70s));  // their tombstones are gone, so others take their places
  fail_room(200, "source-0", 70s);
  CHECK(untold() == 1);

  peer_view source{{3}, {1}, {"source-0", {5}, {}, engine_role::prefill}, s.r.layout, {}};
  s.tell(peer_up{source, "nobody-1"}, 71s);
  CHECK(s.frames.empty());
  for (int session = 0; session < 2; ++session) {
    s.tell(peer_up{source, "source-0"}, 71s);
    REQUIRE(s.frames.size() == 1);
    CHECK(std::get<abort_message>(s.frames[0]).reason.code == errc::peer_unknown);
    s.frames.clear();
  }
  drained_message answer;
  answer.key = {{200}, {1}};
  s.tell(room_frame{source, answer}, 72s);
  CHECK(untold() == 0);
  s.tell(peer_up{source, "source-0"}, 73s);
  CHECK(s.frames.empty());
}

TEST_CASE("sink rooms: what they refuse is told to its source, at once or when it is there") {
  bare_sink s;
  peer_view source = s.r.prefill();
  s.tell(no_new_rooms{});
  s.tell(announce_call{{7}, "source-0", ""});
  CHECK(s.frames.empty());
  s.tell(peer_up{source, "source-0"});
  REQUIRE(s.frames.size() == 1);
  CHECK(std::get<abort_message>(s.frames[0]).reason.code == errc::peer_draining);
  s.tell(announce_call{{8}, "source-0", ""});
  REQUIRE(s.frames.size() == 2);
  CHECK(std::get<abort_message>(s.frames[1]).key == room_key{{8}, {1}});
  s.tell(announce_call{{8}, "source-0", ""});  // the next try
  CHECK(std::get<abort_message>(s.frames.back()).key == room_key{{8}, {2}});
}

TEST_CASE("room timers: the earliest deadline comes first, through any order of renewals") {
  room_timers timers;
  std::map<room_id, time_point> model;
  constexpr std::uint64_t seed = 9;
  MESSAGE("seed ", seed);
  std::mt19937_64 random(seed);
  for (int step = 0; step < 1000; ++step) {
    room_id r{random() % 20};
    auto when = random() % 5 == 0 ? time_point::max() : at(std::chrono::seconds(random() % 100));
    timers.set(r, when);
    model.erase(r);
    if (when != time_point::max()) model[r] = when;

    auto now = at(std::chrono::seconds(random() % 100));
    auto earliest = time_point::max();
    std::set<room_id> due;
    for (const auto& [id, deadline] : model) {
      earliest = std::min(earliest, deadline);
      if (deadline <= now) due.insert(id);
    }
    CHECK(timers.next() == earliest);
    auto listed = timers.due(now);
    CHECK(std::set<room_id>(listed.begin(), listed.end()) == due);
    CHECK(listed.size() == due.size());
  }
}

TEST_CASE("a frame of a type that is not known is refused as unsupported") {
  for (unsigned type : {0x7fu, 0u, 100u, 0xffffu}) {
    auto message = decode_room_message(static_cast<message_type>(type), {});
    REQUIRE_FALSE(message);
    CHECK(message.error().code == errc::wire_unsupported);
  }
}

}  // namespace handoff::testing
