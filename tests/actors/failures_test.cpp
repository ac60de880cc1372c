// Failures on purpose in runtimes: each kind ends its room on both sides with the same reason, and is
// counted.
#include "tests/actors/trio.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace handoff;
using namespace handoff::test;

namespace {

engine::configure fail_always(const std::string& engine, failure_kind kind) {
  return [=](engine_config& c) {
    if (c.engine.name != engine) return;
    c.testing.enabled = true;
    c.testing.failure_probability[static_cast<std::size_t>(kind)] = 1;
  };
}

/// Starts one room on both sides and feeds it as far as it goes, in one chunk or two.
void start_room(trio& t, room_id room, int chunks = 1) {
  const auto pages = ids({0, 1});
  const page_span span{{0}, 0, pages, 0};
  const metadata_row row{};
  REQUIRE_FALSE(t.decode.rt->announce(room, t.where(), "r"));
  REQUIRE_FALSE(t.prefill.rt->offer(room, std::span(&span, 1), 8, std::chrono::seconds(30), "r"));
  const std::uint64_t first = chunks == 2 ? 4 : 0;
  if (first > 0) REQUIRE_FALSE(t.prefill.rt->send(room, {.last_token = first}, nullptr));
  REQUIRE_FALSE(t.prefill.rt->send(room, {.first_token = first, .last_token = 8, .last = true}, &row));
  auto announced = t.decode.wait_poll(room, kv_poll::waiting_for_input);
  REQUIRE(announced);
  if (announced->poll == kv_poll::waiting_for_input)
    REQUIRE_FALSE(t.decode.rt->publish(room, std::span(&span, 1), 8));
}

std::optional<room_event> end_of(engine& e, room_id room) {
  for (const auto& seen : e.seen)
    if (seen.key.room == room && seen.what == room_event::kind::verdict && is_terminal(seen.poll))
      return seen;
  return e.wait_for([&](const room_event& event) {
    return event.key.room == room && event.what == room_event::kind::verdict && is_terminal(event.poll);
  });
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("an injected failure ends its room on both sides with one reason, and the status counts it") {
  const struct {
    std::string engine;
    failure_kind kind;
  } cases[] = {{"prefill-0", failure_kind::poll},
               {"decode-0", failure_kind::poll},
               {"prefill-0", failure_kind::post},
               {"decode-0", failure_kind::commit}};
  for (const auto& c : cases) {
    CAPTURE(c.engine);
    CAPTURE(to_string(c.kind));
    trio t("tcp", fail_always(c.engine, c.kind));
    start_room(t, {5});
    const auto source = end_of(t.prefill, {5}), sink = end_of(t.decode, {5});
    REQUIRE(source);
    REQUIRE(sink);
    CHECK(source->poll == kv_poll::failed);
    CHECK(to_string(source->code) == "injected");
    CHECK(std::string(source->reason.data()) == sink->reason.data());
    const std::string reason = source->reason.data();
    CHECK_MESSAGE(reason.find(std::string(to_string(c.kind)) + " failure no. 1 on purpose") != reason.npos,
                  reason);
    CHECK_MESSAGE(reason.find("room 5") != reason.npos, reason);
    CHECK(t.prefill.wait_released({5}));
    CHECK(t.decode.wait_released({5}));
    auto& injecting = c.engine == "decode-0" ? t.decode : t.prefill;
    CHECK(injecting.rt->status().injected[static_cast<std::size_t>(c.kind)] == 1);
  }
}

TEST_CASE("a completion or a frame that fails on purpose costs the session, and names itself") {
  {
    // Of two chunks, so that the one that fails carries no room_done: past that the sink decides.
    trio t("tcp", fail_always("prefill-0", failure_kind::completion));
    start_room(t, {5}, 2);
    const auto source = end_of(t.prefill, {5}), sink = end_of(t.decode, {5});
    REQUIRE(source);
    REQUIRE(sink);
    CHECK(to_string(source->code) == "injected");
    CHECK((sink->code == errc::injected || sink->code == errc::peer_gone));
    CHECK(t.prefill.wait_released({5}));
    CHECK(t.decode.wait_released({5}));
  }
  trio t("tcp", fail_always("decode-0", failure_kind::frame));
  REQUIRE_FALSE(t.decode.rt->announce({5}, t.where(), "r"));
  const auto sink = end_of(t.decode, {5});
  REQUIRE(sink);
  CHECK(to_string(sink->code) == "peer_gone");
  const std::string reason = sink->reason.data();
  CHECK_MESSAGE(reason.find("prefill-0") != reason.npos, reason);
  CHECK_MESSAGE(reason.find("injected: frame failure no. 1 on purpose, room 5") != reason.npos, reason);
}

TEST_CASE("why a room ended comes over the control connection when the fabric does not take it") {
  trio t("tcp", fail_always("prefill-0", failure_kind::frame));
  const auto pages = ids({0, 1});
  const page_span span{{0}, 0, pages, 0};
  REQUIRE_FALSE(t.decode.rt->announce({5}, t.where(), "r"));
  REQUIRE_FALSE(t.prefill.rt->offer({5}, std::span(&span, 1), 8, std::chrono::seconds(30), "r"));
  REQUIRE(t.decode.wait_poll({5}, kv_poll::waiting_for_input));
  REQUIRE_FALSE(t.decode.rt->publish({5}, std::span(&span, 1), 8));
  REQUIRE(t.prefill.wait_poll({5}, kv_poll::waiting_for_input));
  REQUIRE_FALSE(t.prefill.rt->abort({5}, "the client left"));
  const auto source = end_of(t.prefill, {5}), sink = end_of(t.decode, {5});
  REQUIRE(source);
  REQUIRE(sink);
  CHECK(to_string(sink->code) == "aborted");
  CHECK(std::string(source->reason.data()) == sink->reason.data());
  CHECK(t.prefill.wait_released({5}));
  CHECK(t.decode.wait_released({5}));
}

TEST_CASE("a completion that fails behind room_done leaves the room to its sink, or to the loss of it") {
  trio t("tcp", fail_always("prefill-0", failure_kind::completion));
  start_room(t, {5});
  const auto source = end_of(t.prefill, {5}), sink = end_of(t.decode, {5});
  REQUIRE(source);
  REQUIRE(sink);
  CAPTURE(source->reason.data());
  CAPTURE(sink->reason.data());
  if (source->poll != sink->poll) CHECK((source->code == errc::peer_gone || sink->code == errc::peer_gone));
  CHECK(t.prefill.rt->status().injected[static_cast<std::size_t>(failure_kind::completion)] == 1);
  CHECK(t.prefill.wait_released({5}));
  CHECK(t.decode.wait_released({5}));
}

TEST_CASE("a breakpoint is met once, in the state that it names") {
  trio t("tcp", [](engine_config& c) {
    c.testing = {
        true, {}, 1, c.engine.name == "prefill-0" ? "sender.sending" : "receiver.published:6", "report"};
    if (c.engine.name == "registry") c.testing = {};
  });
  for (std::uint64_t room : {5, 6, 7}) hand_over(t, {room}, 8, ids({0, 1}), ids({2, 3}), 1);
  CHECK_MESSAGE(count_of(t.prefill.log(), "breakpoint: ") == 1, t.prefill.log());
  CHECK_MESSAGE(count_of(t.prefill.log(), "breakpoint: sender.sending room 5") == 1, t.prefill.log());
  CHECK_MESSAGE(count_of(t.decode.log(), "breakpoint: ") == 1, t.decode.log());
  CHECK_MESSAGE(count_of(t.decode.log(), "breakpoint: receiver.published room 6") == 1, t.decode.log());
}

TEST_CASE("a breakpoint in no state is refused with the states that there are") {
  for (const std::string where : {"sender", "sender.waiting", "peer.ready:5",
                                  "sender.sending:", "sender.sending:x", "sending.sender"}) {
    CAPTURE(where);
    runtime_options o;
    o.config = config_for("e", "127.0.0.1:1", "tcp");
    o.config.testing.enabled = true;
    o.config.testing.breakpoint = where;
    const auto made = runtime::create(std::move(o));
    REQUIRE_FALSE(made);
    CHECK(to_string(made.error().code) == "config_range");
    CHECK(made.error().detail.find("/testing/breakpoint: \"" + where + "\"") != std::string::npos);
  }
}
