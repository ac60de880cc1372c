// Builds and configurations that differ: they serve each other, or both say the same reason, and soon.
#include "tests/actors/raw_connection.hpp"
#include "tests/actors/trio.hpp"

using namespace handoff;
using namespace handoff::test;

namespace {

using clock_type = std::chrono::steady_clock;

/// A build that speaks `min` to `max`, and whose messages are longer than ours.
wire::bytes of_newer_build(wire::bytes message, std::uint16_t protocol = limits::protocol_max) {
  auto header = wire::verify(message, limits::control_message_bytes);
  REQUIRE(header);
  message.insert(message.end(), 24, std::byte{0x5a});  // fields that were added at the end
  header->protocol = protocol;
  wire::seal(*header, message);
  return message;
}

hello_message newer_hello(std::uint16_t min, std::uint16_t max, engine_role role = engine_role::prefill) {
  hello_message hello;
  hello.protocol_min = min;
  hello.protocol_max = max;
  hello.self = {"newer", {77}, {}, role};
  return hello;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Announces rooms until one fails within a second, three at most: a busy machine may hold one up.
room_event refused_soon(engine& sink, const std::string& peer) {
  for (std::uint64_t room = 1;; ++room) {
    auto start = clock_type::now();
    REQUIRE(!sink.rt->announce({room}, peer, ""));
    auto failed = sink.wait_poll({room}, kv_poll::failed);
    REQUIRE(failed);
    auto took = clock_type::now() - start;
    CHECK(sink.wait_released({room}));
    if (took < std::chrono::seconds(1)) return *failed;
    REQUIRE_MESSAGE(room < 3, "the refusal took longer than a second three times");
  }
}

}  // namespace

TEST_CASE("a newer build whose protocols include ours is served, longer messages and all") {
  trio t("tcp");
  raw_connection registry(t.where());
  registry.write(of_newer_build(wire::encode(newer_hello(1, limits::protocol_max + 1, engine_role::decode))));
  auto ok = registry.read<hello_ok_message>();
  REQUIRE(ok);
  CHECK(ok->protocol == limits::protocol_max);
  register_rank_message rank;
  rank.self = newer_hello(1, 1, engine_role::decode).self;
  rank.control_address = "127.0.0.1:9";
  rank.lease_ms = 10'000;
  registry.write(of_newer_build(wire::encode(rank)));
  CHECK(registry.read<register_ok_message>());
  registry.write(of_newer_build(wire::encode(topology_query_message{})));
  auto snapshot = registry.read<topology_snapshot_message>();
  REQUIRE(snapshot);
  CHECK(std::any_of(snapshot->ranks.begin(), snapshot->ranks.end(),
                    [](const auto& r) { return r.identity.engine == "newer"; }));
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}

TEST_CASE("a newer build that dials without a common protocol hears the text that is logged here") {
  trio t("tcp");
  for (std::uint16_t header : {std::uint16_t{1}, static_cast<std::uint16_t>(limits::protocol_max + 1)}) {
    CAPTURE(header);
    raw_connection peer(t.prefill.rt->control_address());
    peer.write(of_newer_build(wire::encode(newer_hello(2, 3)), header));
    auto ok = peer.read<hello_ok_message>();
    REQUIRE(!ok);
    CHECK(ok.error().code == errc::wire_version);
    CHECK(ok.error().detail == "newer speaks protocol 2 to 3, prefill-0 speaks 1 to 1");
    CHECK(contains(t.prefill.log(), ok.error().detail));
  }
}

TEST_CASE("a newer build that is dialled without a common protocol fails the room with its text, soon") {
  trio t("tcp");
  raw_listener newer;
  raw_connection registry(t.where());
  registry.write(wire::encode(newer_hello(1, 2)));
  REQUIRE(registry.read<hello_ok_message>());
  register_rank_message rank;
  rank.self = newer_hello(1, 2).self;
  rank.control_address = newer.address();
  rank.lease_ms = 600'000;
  registry.write(wire::encode(rank));
  REQUIRE(registry.read<register_ok_message>());
  std::string text = "decode-0 speaks protocol 1 to 1, newer speaks 2 to 3";

  auto start = clock_type::now();
  REQUIRE(!t.decode.rt->announce({1}, "newer", ""));
  auto dialled = newer.accept();
  auto hello = dialled.read<hello_message>();
  REQUIRE(hello);
  CHECK(hello->protocol_max == limits::protocol_max);
  SUBCASE("it refuses our hello, in its own protocol") {
    dialled.write(of_newer_build(wire::encode(refusal_message{{errc::wire_version, text, {}}}), 2));
  }
  SUBCASE("it takes a protocol that we do not speak") {
    dialled.write(of_newer_build(wire::encode(hello_ok_message{2, rank.self}), 2));
    auto refusal = dialled.read<hello_ok_message>();
    REQUIRE(!refusal);
    text = refusal.error().detail;
    CHECK(text == "newer answers with protocol 2, decode-0 speaks 1 to 1");
  }
  auto failed = t.decode.wait_poll({1}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::wire_version);
  CHECK_MESSAGE(contains(failed->reason.data(), text), failed->reason.data());
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - start).count();
  MESSAGE("refused after ", took, " ms");
  CHECK(t.decode.wait_released({1}));
}

TEST_CASE("model revisions that differ are refused on both sides with one text, soon") {
  engine registry("registry", engine_role::bootstrap, "", "tcp");
  auto where = registry.rt->endpoint();
  const std::string text = "model_revision: prefill has \"a\", decode has \"b\"";
  mismatch_rule warn{"model_revision", mismatch_action::warn};
  for (bool source_warns : {false, true}) {
    CAPTURE(source_warns);  // then only the sink refuses, and the source hears of it
    auto name = source_warns ? std::string("prefill-1") : std::string("prefill-0");
    engine prefill(name, engine_role::prefill, where, "tcp", [&](auto& c) {
      c.model.revision = "a";
      if (source_warns) c.compatibility.rules.push_back(warn);
    });
    engine decode("decode-" + name, engine_role::decode, where, "tcp",
                  [](auto& c) { c.model.revision = "b"; });
    auto failed = refused_soon(decode, name);
    CHECK(failed.code == errc::peer_incompatible);
    CHECK_MESSAGE(contains(failed.reason.data(), text), failed.reason.data());
    CHECK(decode.rt->status().peers == 0);
    // The source's peer, if it made one, ends with the same text.
    for (auto until = clock_type::now() + std::chrono::seconds(10);
         (!contains(prefill.log(), text) || prefill.rt->status().peers > 0) && clock_type::now() < until;)
      ::poll(nullptr, 0, 5);
    CHECK(contains(prefill.log(), "peer_incompatible: " + text));
    CHECK(prefill.rt->status().peers == 0);
  }
}

TEST_CASE("model revisions that differ are served where both sides' rules only warn") {
  trio t("tcp", [](auto& c) {
    c.model.revision = c.engine.name;
    c.compatibility.rules.push_back({"model_revision", mismatch_action::warn});
  });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  const std::string text = "model_revision: prefill has \"prefill-0\", decode has \"decode-0\"";
  CHECK(contains(t.prefill.log(), "peer-differs: decode-0: " + text));
  CHECK(contains(t.decode.log(), "peer-differs: prefill-0: " + text));
}
