// A registry that dies and comes back on its address: ranks register again by themselves, rooms between
// connected peers do not notice, and whoever asks meanwhile is answered when it is back.
#include "tests/actors/trio.hpp"

using namespace handoff;
using namespace handoff::test;

namespace {

void quick(engine_config& c) {
  c.timeouts.retry_ms = 50;
  c.timeouts.bootstrap_lease_ms = 600;
  c.timeouts.bootstrap_renew_ms = 100;
}

struct fleet {
  std::unique_ptr<engine> registry =
      std::make_unique<engine>("registry", engine_role::bootstrap, "", "tcp", quick);
  std::string where = registry->rt->endpoint();
  engine prefill{"prefill-0", engine_role::prefill, where, "tcp", quick};
  engine decode{"decode-0", engine_role::decode, where, "tcp", quick};

  void kill_registry() { registry.reset(); }
  void revive_registry() {
    registry = std::make_unique<engine>("registry", engine_role::bootstrap, "", "tcp", [&](engine_config& c) {
      quick(c);
      c.bootstrap.bind = where;
    });
  }

  void hand_over(engine& sink, room_id room) { hand_over_announced(prefill, sink, room); }
};

}  // namespace

TEST_CASE("rooms of connected peers end while the registry is away, and a new peer's when it is back") {
  fleet f;
  REQUIRE(!f.decode.rt->announce({1}, f.where, ""));
  f.hand_over(f.decode, {1});
  f.kill_registry();
  for (std::uint64_t room = 2; room < 6; ++room) {
    REQUIRE(!f.decode.rt->announce({room}, f.where, ""));
    f.hand_over(f.decode, {room});
  }
  // A rank that starts while the registry is away starts all the same, and its room waits.
  engine late("decode-1", engine_role::decode, f.where, "tcp", quick);
  REQUIRE(!late.rt->announce({6}, f.where, ""));
  CHECK(late.rt->status().rooms == 1);
  f.revive_registry();
  f.hand_over(late, {6});
  CHECK(!late.rt->drain(std::chrono::seconds(5)));
  check_baseline(late);
  CHECK(f.decode.rt->status().peers == 1);
}

TEST_CASE("every new life of the registry gets the ranks again") {
  fleet f;
  REQUIRE(!f.decode.rt->announce({1}, "prefill-0", ""));
  f.hand_over(f.decode, {1});
  for (std::uint64_t life = 1; life < 4; ++life) {
    CAPTURE(life);
    f.kill_registry();
    f.revive_registry();
    engine late("decode-" + std::to_string(life), engine_role::decode, f.where, "tcp", quick);
    REQUIRE(!late.rt->announce({10 + life}, "prefill-0", ""));
    f.hand_over(late, {10 + life});
    late.rt->close();
  }
}

TEST_CASE("a question that no registry answers ends within the connect bound, by the registry's name") {
  fleet f;
  f.kill_registry();
  engine late("decode-1", engine_role::decode, f.where, "tcp", [](engine_config& c) {
    quick(c);
    c.timeouts.connect_ms = 400;
    c.timeouts.probe_ms = 200;
  });
  REQUIRE(!late.rt->announce({6}, f.where, ""));
  auto failed = late.wait_poll({6}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::peer_unknown);
  CHECK(std::string(failed->reason.data()).find("bootstrap " + f.where + " is not reachable") !=
        std::string::npos);
}
