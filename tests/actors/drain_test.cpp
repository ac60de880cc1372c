// Draining, asked for by the engine or over a control connection: rooms that are open go on, new ones are
// refused with one reason on both sides, and nobody takes it for a failure.
#include "tests/actors/raw_connection.hpp"
#include "tests/actors/trio.hpp"

using namespace handoff;
using namespace handoff::test;

namespace {

constexpr auto no_wait = std::chrono::milliseconds(0);

/// Open on both sides, destination known, nothing sent yet.
void open_room(trio& t, room_id room, const std::vector<page_id>& page_list, std::uint64_t tokens) {
  page_span span{{0}, 0, page_list, 0};
  REQUIRE(!t.prefill.rt->offer(room, std::span(&span, 1), tokens, std::chrono::seconds(60), ""));
  REQUIRE(!t.decode.rt->announce(room, t.where(), ""));
  REQUIRE(t.decode.wait_poll(room, kv_poll::waiting_for_input));
  REQUIRE(!t.decode.rt->publish(room, std::span(&span, 1), tokens));
  REQUIRE(t.decode.wait_poll(room, kv_poll::transferring));
}

void end_room(trio& t, room_id room, std::uint64_t tokens) {
  metadata_row row{
      .first_token = 1, .cached_tokens = 0, .cached_device = 0, .cached_host = 0, .cached_storage = 0};
  REQUIRE(!t.prefill.rt->send(room, {.first_token = 0, .last_token = tokens, .last = true}, &row));
  auto done = t.decode.wait_poll(room, kv_poll::success);
  REQUIRE(done);
  CHECK_MESSAGE(done->poll == kv_poll::success, done->reason.data());
  CHECK(!t.decode.rt->commit(room, row));
  CHECK(t.prefill.wait_released(room));
  CHECK(t.decode.wait_released(room));
}

void check_refused(const std::optional<room_event>& event, const std::string& who) {
  REQUIRE(event);
  CHECK(event->poll == kv_poll::failed);
  CHECK_MESSAGE(event->code == errc::peer_draining, event->reason.data());
  CHECK(std::string(event->reason.data()).find("engine " + who) != std::string::npos);
  CHECK(std::string(event->reason.data()).find("is draining: it takes no new rooms") != std::string::npos);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a draining source lets its rooms end, refuses new ones on both sides, and stays a peer") {
  for (const std::string provider : {"tcp", "shm"}) {
    CAPTURE(provider);
    trio t(provider);
    hand_over(t, {1}, 9, ids({0, 1, 2}), ids({0, 1, 2}), 1);
    auto pages_ = ids({4, 5});
    open_room(t, {2}, pages_, 8);
    auto busy = t.prefill.rt->drain(no_wait);
    CHECK(busy.code == errc::timed_out);
    CHECK_MESSAGE(contains(busy.detail, "engine prefill-0 dp0 pp0 cp0 tp0 still has 1 rooms"), busy.detail);

    REQUIRE(!t.decode.rt->announce({3}, t.where(), ""));
    auto sink = t.decode.wait_poll({3}, kv_poll::waiting_for_input);
    if (sink && !is_terminal(sink->poll)) sink = t.decode.wait_poll({3}, kv_poll::failed);
    check_refused(sink, "prefill-0");
    CHECK(t.decode.wait_released({3}));
    auto others = ids({8});
    page_span span{{0}, 0, others, 0};
    REQUIRE(!t.prefill.rt->offer({3}, std::span(&span, 1), 4, std::chrono::seconds(60), ""));
    auto source = t.prefill.wait_poll({3}, kv_poll::failed);
    check_refused(source, "prefill-0");
    CHECK(std::string(source->reason.data()) == sink->reason.data());
    CHECK(t.prefill.wait_released({3}));

    end_room(t, {2}, 8);
    CHECK(!t.prefill.rt->drain(std::chrono::seconds(5)));
    CHECK(t.decode.rt->status().peers == 1);
    CHECK(!contains(t.decode.log(), "peer-lost"));
    CHECK(contains(t.prefill.log(), "drained: engine prefill-0 dp0 pp0 cp0 tp0 has no room left"));
    check_baseline(t.prefill);
    check_baseline(t.decode);
  }
}

TEST_CASE("a room that only its sink knows of ends when its source begins to drain") {
  trio t("tcp");
  hand_over(t, {1}, 4, ids({0}), ids({0}), 1);
  REQUIRE(!t.decode.rt->announce({2}, t.where(), ""));
  REQUIRE(t.decode.wait_poll({2}, kv_poll::waiting_for_input));
  CHECK(!t.prefill.rt->drain(std::chrono::seconds(5)));
  check_refused(t.decode.wait_poll({2}, kv_poll::failed), "prefill-0");
  CHECK(t.decode.wait_released({2}));
  check_baseline(t.prefill);
  check_baseline(t.decode);
}

TEST_CASE("a draining sink announces nothing new and its rooms end") {
  trio t("tcp");
  auto pages_ = ids({4, 5});
  open_room(t, {2}, pages_, 8);
  CHECK(t.decode.rt->drain(no_wait).code == errc::timed_out);
  REQUIRE(!t.decode.rt->announce({3}, t.where(), ""));
  check_refused(t.decode.wait_poll({3}, kv_poll::failed), "decode-0");
  CHECK(t.decode.wait_released({3}));
  // Its source hears it too, whether it has offered already or will.
  const auto offered = ids({9});
  const page_span span{{0}, 0, offered, 0};
  REQUIRE(!t.prefill.rt->offer({3}, std::span(&span, 1), 4, std::chrono::seconds(60), ""));
  check_refused(t.prefill.wait_poll({3}, kv_poll::failed), "decode-0");
  CHECK(t.prefill.wait_released({3}));
  end_room(t, {2}, 8);
  CHECK(!t.decode.rt->drain(std::chrono::seconds(5)));
  check_baseline(t.decode);
}

TEST_CASE("new peers of a draining rank hear it from the registry or from the rank, at once") {
  trio t("tcp");
  CHECK(!t.prefill.rt->drain(std::chrono::seconds(5)));
  engine late("decode-1", engine_role::decode, t.where(), "tcp");
  for (const auto& name : {t.where(), std::string("prefill-0")}) {
    CAPTURE(name);
    REQUIRE(!late.rt->announce({7}, name, ""));
    check_refused(late.wait_poll({7}, kv_poll::failed), "prefill-0");
    CHECK(late.wait_released({7}));
    late.seen.clear();
  }
  raw_connection stranger(t.prefill.rt->control_address());
  hello_message hello;
  hello.self = {"stranger", {5}, {}, engine_role::decode};
  stranger.write(wire::encode(hello));
  REQUIRE(stranger.read<hello_ok_message>());
  connect_request_message request;
  request.self = hello.self;
  stranger.write(wire::encode(request));
  auto reply = stranger.read<connect_reply_message>();
  REQUIRE(!reply);
  CHECK_MESSAGE(reply.error().code == errc::peer_draining, to_string(reply.error()));
}

TEST_CASE("a rank that ends in order is forgotten by the registry before its lease ends") {
  trio t("tcp", [](auto& c) {
    c.timeouts.connect_ms = 1000;
    c.timeouts.probe_ms = 300;
    c.timeouts.bootstrap_lease_ms = 600'000;
  });
  hand_over(t, {1}, 4, ids({0}), ids({0}), 1);
  t.prefill.rt->close();
  engine late("decode-1", engine_role::decode, t.where(), "tcp", [](auto& c) {
    c.timeouts.connect_ms = 1000;
    c.timeouts.probe_ms = 300;
  });
  REQUIRE(!late.rt->announce({7}, "prefill-0", ""));
  auto failed = late.wait_poll({7}, kv_poll::failed);
  REQUIRE(failed);
  CHECK_MESSAGE(failed->code == errc::peer_unknown, failed->reason.data());
  CHECK(contains(failed->reason.data(), "knows no prefill rank"));
  CHECK(contains(t.bootstrap.log(), "rank-left: prefill prefill-0"));
}

TEST_CASE("an operator drains a rank over a control connection, after hello only") {
  trio t("tcp");
  auto pages_ = ids({4, 5});
  open_room(t, {2}, pages_, 8);
  hello_message hello;
  hello.self = {"operator", {5}, {}, engine_role::decode};
  {
    raw_connection rude(t.prefill.rt->control_address());
    rude.write(wire::encode(drain_request_message{0}));
    auto reply = rude.read<drain_reply_message>();
    REQUIRE(!reply);
    CHECK(reply.error().code == errc::wire_unsupported);
  }
  raw_connection control(t.prefill.rt->control_address());
  control.write(wire::encode(hello));
  REQUIRE(control.read<hello_ok_message>());
  control.write(wire::encode(drain_request_message{limits::drain_deadline_ms + 1}));
  auto too_long = control.read<drain_reply_message>();
  REQUIRE(!too_long);
  CHECK(too_long.error().code == errc::wire_too_large);

  control.write(wire::encode(drain_request_message{0}));
  auto reply = control.read<drain_reply_message>();
  REQUIRE(reply);
  CHECK(reply->rooms_left == 1);
  CHECK(reply->reason.code == errc::timed_out);

  control.write(wire::encode(drain_request_message{30'000}));  // is answered when the room ends
  control.write(wire::encode(drain_request_message{30'000}));  // one at a time
  auto second = control.read<drain_reply_message>();
  REQUIRE(!second);
  CHECK(second.error().code == errc::limit_exceeded);
  end_room(t, {2}, 8);
  reply = control.read<drain_reply_message>();
  REQUIRE(reply);
  CHECK(reply->rooms_left == 0);
  CHECK(!reply->reason);

  raw_connection registry(t.where());
  registry.write(wire::encode(hello));
  REQUIRE(registry.read<hello_ok_message>());
  registry.write(wire::encode(drain_request_message{0}));
  auto nothing = registry.read<drain_reply_message>();
  REQUIRE(!nothing);
  CHECK(nothing.error().code == errc::wire_unsupported);
}
