// The registry: leases, incarnations, versions, subscribers.
#include "actors/bootstrap/registry_machine.hpp"

#include <doctest/doctest.h>

namespace handoff {
namespace {

using namespace std::chrono_literals;

time_point at(duration d) {
  return time_point{} + 1h + d;
}
register_rank_message rank(std::uint16_t tp = 0, std::uint64_t incarnation = 1, const char* engine = "p") {
  return {
      {engine, {incarnation}, {0, 0, 0, tp}, engine_role::prefill}, {4, 1, 1, 2}, "127.0.0.1:5000", 10'000};
}

struct bench {
  registry_machine m{{{99}, 4, 2, 10min}};
  registry_effects out;

  errc add(register_rank_message message, duration when = 0s) {
    auto ok = m.register_rank(message, at(when), out);
    text = ok ? "" : ok.error().detail;
    return ok ? errc::ok : ok.error().code;
  }
  bool says(std::string_view what) const { return text.find(what) != std::string::npos; }
  std::string text;
};

}  // namespace

TEST_CASE("ranks register, renew without a change, and end with their lease") {
  bench b;
  CHECK(b.add(rank(0)) == errc::ok);
  CHECK(b.add(rank(1), 5s) == errc::ok);
  CHECK(b.m.version() == 2);
  CHECK(b.add(rank(0), 6s) == errc::ok);
  CHECK(b.m.version() == 2);
  CHECK(b.m.deadline() == at(15s));
  b.m.tick(at(15s) - 1ns, b.out);
  CHECK(b.m.ranks() == 2);
  b.m.tick(at(15s), b.out);
  CHECK(b.m.ranks() == 1);
  CHECK(b.m.version() == 3);
  b.m.tick(at(16s), b.out);
  CHECK(b.m.ranks() == 0);
  CHECK(b.m.deadline() == time_point::max());
}

TEST_CASE("a new incarnation replaces the old, which is refused from then on") {
  bench b;
  b.add(rank(0, 1));
  CHECK(b.add(rank(0, 2)) == errc::ok);
  CHECK(b.m.snapshot("").ranks.at(0).identity.incarnation.value == 2);
  CHECK(b.add(rank(0, 1)) == errc::peer_gone);
  CHECK(b.says("was replaced by 0000000000000002"));
  b.m.unregister_rank(rank(0, 1).self, b.out);
  CHECK(b.m.ranks() == 1);
  b.m.unregister_rank(rank(0, 2).self, b.out);
  CHECK(b.m.ranks() == 0);
  CHECK(b.m.version() == 3);
}

TEST_CASE("ranks of one engine that disagree are refused, both values named") {
  bench b;
  b.add(rank(0));
  auto other = rank(1);
  other.topology.tp = 4;
  CHECK(b.add(other) == errc::peer_incompatible);
  CHECK(b.says("dp4 pp1 cp1 tp4"));
  CHECK(b.says("dp4 pp1 cp1 tp2"));
  other = rank(1);
  other.self.role = engine_role::decode;
  CHECK(b.add(other) == errc::peer_incompatible);
  CHECK(b.says("as decode"));
  CHECK(b.says("as prefill"));
  CHECK(b.m.version() == 1);
  other = rank(0, 5);  // alone it may come back with another shape
  other.topology.tp = 4;
  CHECK(b.add(other) == errc::ok);
}

TEST_CASE("ranks whose list would not fit into one message are refused, and make room when they go") {
  registry_context context;
  context.list_bytes_max = 200;
  registry_machine m(context);
  registry_effects out;
  std::uint32_t taken = 0;
  const auto add = [&](std::uint64_t life, std::string engine) {
    auto message = rank(0, life, engine.c_str());
    return m.register_rank(message, at(1s), out);
  };
  while (add(1, "engine-" + std::to_string(taken))) ++taken;
  CHECK(taken > 0);
  const auto refused = add(1, "engine-x");
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::limit_exceeded);
  CHECK(refused.error().detail.find("200 bytes") != std::string::npos);
  CHECK(add(2, "engine-0"));  // another life of one that is there
  auto longer = rank(0, 2, "engine-0");
  longer.control_address.assign(200, 'a');
  CHECK(!m.register_rank(longer, at(1s), out));
  m.unregister_rank(rank(0, 2, "engine-0").self, out);
  CHECK(add(1, "engine-x"));
  m.tick(at(24h), out);
  CHECK(m.ranks() == 0);
  CHECK(add(1, "engine-0"));
}

TEST_CASE("registrations that make no sense are refused") {
  bench b;
  auto bad = rank(2);
  CHECK(b.add(bad) == errc::invalid_argument);
  CHECK(b.says("lies outside of its own topology dp4 pp1 cp1 tp2"));
  bad = rank(0), bad.lease_ms = 0;
  CHECK(b.add(bad) == errc::invalid_argument);
  bad = rank(0), bad.control_address.clear();
  CHECK(b.add(bad) == errc::invalid_argument);
  bad = rank(0), bad.self.engine.clear();
  CHECK(b.add(bad) == errc::invalid_argument);
  bad = rank(0), bad.self.engine.assign(129, 'e');
  CHECK(b.add(bad) == errc::invalid_argument);
  bad = rank(0), bad.control_address.assign(265, 'a');
  CHECK(b.add(bad) == errc::invalid_argument);
  CHECK(b.m.version() == 0);
  for (const char* engine : {"a", "b", "c", "d"}) CHECK(b.add(rank(0, 1, engine)) == errc::ok);
  CHECK(b.add(rank(0, 1, "e")) == errc::limit_exceeded);
  CHECK(b.add(rank(0, 2, "d")) == errc::ok);
}

TEST_CASE("subscribers get a snapshot at once and on every change of what they asked for") {
  bench b;
  b.add(rank(0, 1, "p"));
  REQUIRE(b.m.subscribe({7}, "p", b.out) == error{});
  REQUIRE(b.m.subscribe({8}, "", b.out) == error{});
  CHECK(b.m.subscribe({9}, "", b.out).code == errc::limit_exceeded);
  REQUIRE(b.out.size() == 2);
  CHECK(b.out[0].snapshot.bootstrap.value == 99);
  CHECK(b.out[0].snapshot.ranks.size() == 1);
  b.out.clear();
  b.add(rank(0, 1, "q"));
  REQUIRE(b.out.size() == 1);
  CHECK(b.out[0].subscriber.value == 8);
  CHECK(b.out[0].snapshot.ranks.size() == 2);
  CHECK(b.out[0].snapshot.version == 2);
  b.out.clear();
  b.m.tick(at(1min), b.out);  // both engines end
  CHECK(b.out.size() == 3);
  CHECK(b.out.back().snapshot.ranks.empty());
  b.m.unsubscribe({8});
  b.out.clear();
  b.add(rank(1, 1, "p"), 1min);
  CHECK(b.out.size() == 1);
  CHECK(b.m.subscribers() == 1);
}

TEST_CASE("the dp rank of a room is the same for everyone") {
  bench b;
  CHECK(b.m.dp_rank_of({5}, "p").error().code == errc::peer_unknown);
  b.add(rank(1));
  CHECK(b.m.dp_rank_of({0}, "p") == 0);
  CHECK(b.m.dp_rank_of({5}, "p") == 1);
  CHECK(b.m.dp_rank_of({UINT64_MAX}, "p") == 3);
}

TEST_CASE("a lease is bounded by the registry") {
  bench b;
  auto forever = rank(0);
  forever.lease_ms = UINT32_MAX;
  b.add(forever);
  CHECK(b.m.deadline() == at(10min));
}

}  // namespace handoff
