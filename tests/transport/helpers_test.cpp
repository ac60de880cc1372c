// The pure parts that every transport is made of.
#include "transport/credits.hpp"
#include "transport/frame_session.hpp"
#include "transport/plan_cursor.hpp"
#include "transport/silence.hpp"
#include "transport/validate.hpp"

#include <random>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::transport;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t top = ~std::uint64_t{0};

outgoing_frame frame(std::uint8_t mark, bool urgent = false) {
  return {message_type::publish, {std::byte{mark}}, urgent};
}

transfer plan(std::vector<std::uint64_t> sizes, std::vector<std::uint64_t> last, bool notify) {
  transfer t;
  t.id = {7};
  for (auto n : sizes) t.blocks.push_back({{0}, 100 * t.blocks.size(), {0}, 0, n});
  for (auto n : last) t.last_blocks.push_back({{1}, 0, {1}, 0, n});
  if (notify) t.notify = frame(1);
  return t;
}

}  // namespace

TEST_CASE("bounds are checked without wrapping") {
  CHECK(within(0, 0, 0));
  CHECK(within(5, 5, 10));
  CHECK_FALSE(within(5, 6, 10));
  CHECK_FALSE(within(11, 0, 10));
  CHECK_FALSE(within(top, 2, 10));
  CHECK_FALSE(within(2, top, 10));
  CHECK(within(top, 0, top));
}

TEST_CASE("a block outside of a region is refused, with list, index and side named") {
  std::vector<std::byte> memory(100);
  const std::vector<memory_region> local{{memory.data(), 100, memory_kind::host}};
  const std::vector<remote_region> remote{{1, 0, 100}, {2, top - 10, 100}};
  const auto one = [&](block b) {
    const std::vector<block> blocks{{{0}, 0, {0}, 0, 1}, b};
    return check_blocks(blocks, local, remote, "blocks");
  };
  CHECK(one({{0}, 0, {0}, 0, 100}));
  CHECK(one({{0}, 100, {0}, 100, 0}));
  for (const block& bad : {block{{1}, 0, {0}, 0, 1}, block{{0}, 0, {2}, 0, 1}, block{{0}, 1, {0}, 0, 100},
                           block{{0}, 0, {0}, 1, 100}, block{{0}, top, {0}, 0, 2}, block{{0}, 0, {0}, top, 2},
                           block{{0}, 0, {1}, 0, 11}}) {
    const auto result = one(bad);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == errc::transport_region);
    CHECK(result.error().detail.find("blocks[1]: ") == 0);
  }
  CHECK(one({{0}, 1, {0}, 0, 100}).error().detail.find("local region 0") != std::string::npos);
  CHECK(one({{0}, 0, {0}, 1, 100}).error().detail.find("remote region 0") != std::string::npos);
}

TEST_CASE("a region needs an address, a byte, and an end inside the address space") {
  std::byte b{};
  CHECK(check_region({&b, 1, memory_kind::host}));
  CHECK_FALSE(check_region({nullptr, 1, memory_kind::host}));
  CHECK_FALSE(check_region({&b, 0, memory_kind::host}));
  CHECK_FALSE(check_region({&b, top, memory_kind::host}));
}

TEST_CASE("a frame holds at most what fits behind its header") {
  outgoing_frame f{message_type::publish, std::vector<std::byte>(limits::frame_bytes - 32), false};
  CHECK(check_frame(f));
  f.payload.push_back({});
  CHECK(check_frame(f).error().code == errc::wire_too_large);
}

TEST_CASE("ordinary frames leave the reserved credits, urgent ones overtake and leave the last") {
  frame_flow flow(10, 4, 5);
  for (std::uint8_t i = 0; i < 5; ++i) CHECK(flow.push(frame(i)));
  CHECK(flow.push(frame(9)).error().code == errc::transport_full);
  CHECK(flow.push(frame(100, true)));
  CHECK(flow.take_next().payload[0] == std::byte{100});
  for (std::uint8_t i = 0; i < 5; ++i) {
    REQUIRE(flow.next() != nullptr);
    CHECK(flow.take_next().payload[0] == std::byte{i});
  }
  CHECK(flow.credits() == 4);
  CHECK(flow.push(frame(5)));
  CHECK(flow.next() == nullptr);
  for (int i = 0; i < 3; ++i) {
    CHECK(flow.push(frame(101, true)));
    REQUIRE(flow.next() != nullptr);
    CHECK(flow.take_next().urgent);
  }
  CHECK(flow.push(frame(102, true)));
  CHECK(flow.next() == nullptr);
  CHECK_FALSE(flow.may_send(frame_class::heartbeat));
  CHECK(flow.may_send(frame_class::credit));
  flow.used();
  CHECK_FALSE(flow.may_send(frame_class::credit));
  CHECK(flow.granted(10));
  CHECK(flow.queued() == 2);
  CHECK(flow.take_next().urgent);
  CHECK_FALSE(flow.take_next().urgent);
  CHECK_FALSE(flow.granted(3));
}

TEST_CASE("two sides that send without pause, with credits as their only brake, never stop") {
  const std::uint64_t seed = 20240611;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  frame_flow side[2];
  std::deque<std::uint16_t> wire[2];  // credits in the header, on the way to that side
  std::uint64_t sent[2]{};
  const auto transmit = [&](int from) {
    const auto credits = side[from].owed();
    wire[1 - from].push_back(credits);
    side[from].returned(credits);
  };
  for (int step = 0; step < 200'000; ++step) {
    const int s = static_cast<int>(random() % 2);
    if (random() % 3 == 0 && !wire[s].empty()) {
      CHECK(side[s].granted(wire[s].front()));
      wire[s].pop_front();
      side[s].consumed();
    } else if (random() % 2 == 0) {
      if (side[s].queued() < 100) CHECK(side[s].push(frame(0, random() % 4 == 0)));
      while (side[s].next() != nullptr) {
        side[s].take_next();
        ++sent[s];
        transmit(s);
      }
      if (side[s].owes_frame() && side[s].may_send(frame_class::credit)) {
        side[s].used();
        transmit(s);
      }
    }
    CHECK(wire[0].size() <= limits::frame_credits);
    CHECK(wire[1].size() <= limits::frame_credits);
  }
  CHECK(sent[0] > 10'000);
  CHECK(sent[1] > 10'000);
}

TEST_CASE("frames of another session and late ones are told apart, gaps are counted") {
  frame_session session({3});
  CHECK(session.next_sequence() == 1);
  session.sent();
  CHECK(session.next_sequence() == 2);
  CHECK(session.check({2}, 1) == arrival::other_session);
  CHECK(session.check({3}, 1) == arrival::fresh);
  CHECK(session.check({3}, 1) == arrival::late);
  CHECK(session.check({3}, 4) == arrival::fresh);
  CHECK(session.missed() == 2);
  CHECK(session.check({3}, 3) == arrival::late);
  CHECK(session.check({3}, 0) == arrival::late);
  CHECK(session.check({3}, 5) == arrival::fresh);
}

TEST_CASE("silence is told once and ends when the peer is heard") {
  const time_point start{};
  silence_watch watch(100ms, start);
  CHECK(watch.due() == start + 100ms);
  CHECK_FALSE(watch.check(start + 99ms));
  CHECK_FALSE(watch.heard(start + 99ms));
  CHECK_FALSE(watch.check(start + 198ms));
  CHECK(watch.check(start + 200ms) == 101ms);
  CHECK_FALSE(watch.check(start + 500ms));
  CHECK(watch.due() == time_point::max());
  CHECK(watch.heard(start + 600ms));
  CHECK_FALSE(watch.heard(start + 600ms));
  CHECK(watch.check(start + 700ms) == 100ms);
}

TEST_CASE("a transfer's last blocks wait for its blocks, its notify for both") {
  plan_cursor cursor(plan({25, 0, 10}, {5}, true), 10);
  std::vector<std::uint64_t> sizes;
  while (const auto* w = cursor.next_write()) {
    sizes.push_back(w->bytes);
    cursor.posted();
  }
  CHECK(sizes == std::vector<std::uint64_t>{10, 10, 5, 10});
  for (auto n : {10, 10, 5}) {
    cursor.delivered(n);
    CHECK(cursor.next_write() == nullptr);
    CHECK_FALSE(cursor.wants_notify());
    CHECK_FALSE(cursor.finished());
  }
  cursor.delivered(10);
  const auto* last = cursor.next_write();
  REQUIRE(last != nullptr);
  CHECK(last->remote.value == 1);
  CHECK_FALSE(cursor.wants_notify());
  cursor.posted();
  CHECK_FALSE(cursor.wants_notify());
  cursor.delivered(5);
  CHECK(cursor.wants_notify());
  CHECK_FALSE(cursor.finished());
  cursor.take_notify();
  CHECK(cursor.finished());
  const auto done = cursor.done();
  CHECK(done.result.code == errc::ok);
  CHECK(done.drained);
  CHECK(done.bytes == 40);
  CHECK(done.blocks == 4);
  CHECK(done.writes == 5);
}

TEST_CASE("the pieces of a block follow each other on both sides and make up the whole of it") {
  transfer t;
  t.blocks = {{{2}, 1000, {3}, 50, 2'500'000}};
  plan_cursor cursor(std::move(t), 1 << 20);
  std::uint64_t seen = 0;
  while (const auto* w = cursor.next_write()) {
    CHECK(w->local.value == 2);
    CHECK(w->remote.value == 3);
    CHECK(w->local_offset == 1000 + seen);
    CHECK(w->remote_offset == 50 + seen);
    seen += w->bytes;
    cursor.posted();
  }
  CHECK(seen == 2'500'000);
}

TEST_CASE("a transfer without a byte is finished at once, after its notify") {
  CHECK(plan_cursor(plan({}, {}, false), 10).finished());
  plan_cursor cursor(plan({0, 0}, {0}, true), 10);
  CHECK(cursor.next_write() == nullptr);
  CHECK_FALSE(cursor.finished());
  REQUIRE(cursor.wants_notify());
  cursor.take_notify();
  CHECK(cursor.finished());
  CHECK(cursor.done().blocks == 3);
}

TEST_CASE("a failed transfer posts nothing more, never notifies, and keeps its first reason") {
  plan_cursor cursor(plan({10, 10, 10}, {10}, true), 10);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cursor.next_write() != nullptr);
    cursor.posted();
  }
  cursor.write_failed({errc::transport_completion, "first", {}});
  CHECK(cursor.next_write() == nullptr);
  CHECK_FALSE(cursor.finished());
  cursor.stop({errc::timed_out, "second", {}});
  CHECK_FALSE(cursor.done().drained);
  cursor.delivered(10);
  CHECK(cursor.finished());
  CHECK_FALSE(cursor.wants_notify());
  CHECK(cursor.done().result.detail == "first");
  CHECK(cursor.done().drained);
  CHECK(cursor.done().bytes == 10);
}
