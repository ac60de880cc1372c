// Engines that start in any order, and many at once.
#include "tests/actors/trio.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <thread>

using namespace handoff;
using namespace handoff::test;

namespace {

/// An address that was free a moment ago.
std::string free_address() {
  engine taken("registry", engine_role::bootstrap, "", "tcp");
  return taken.rt->endpoint();
}

expected<std::unique_ptr<runtime>> registry_at(const std::string& address) {
  runtime_options o;
  o.config = config_for("registry", "", "tcp");
  o.config.bootstrap.bind = address;
  o.role = engine_role::bootstrap;
  o.log = [](log_level, std::string_view, std::string_view) {};
  return runtime::create(std::move(o));
}

}  // namespace

TEST_CASE("a registry, two sources and a sink find each other in whatever order they start") {
  const auto where = free_address();
  std::array<int, 4> order{0, 1, 2, 3};
  std::uint64_t room = 0;
  do {
    CAPTURE(order[0] * 1000 + order[1] * 100 + order[2] * 10 + order[3]);
    std::unique_ptr<engine> registry, first, second, sink;
    for (int who : order) {
      const auto quick = [&](engine_config& c) {
        c.timeouts.retry_ms = 20;
        if (who == 0) c.bootstrap.bind = where;
      };
      const auto start = [&](const char* name, engine_role role) {
        return std::make_unique<engine>(name, role, role == engine_role::bootstrap ? "" : where, "tcp",
                                        quick);
      };
      if (who == 0) registry = start("registry", engine_role::bootstrap);
      if (who == 1) first = start("prefill-0", engine_role::prefill);
      if (who == 2) second = start("prefill-1", engine_role::prefill);
      if (who == 3) {
        sink = start("decode-0", engine_role::decode);
        // It asks at once, whoever is there to answer.
        REQUIRE(!sink->rt->announce({room + 1}, "prefill-0", ""));
        REQUIRE(!sink->rt->announce({room + 2}, "prefill-1", ""));
      }
    }
    hand_over_announced(*first, *sink, {++room});
    hand_over_announced(*second, *sink, {++room});
    CHECK(sink->rt->status().peers == 2);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("sixteen registries that start at once have an address each") {
  std::array<expected<std::unique_ptr<runtime>>, 16> made;
  std::vector<std::thread> threads;
  for (auto& one : made) threads.emplace_back([&] { one = registry_at("127.0.0.1:0"); });
  for (auto& t : threads) t.join();
  std::set<std::string> addresses;
  for (const auto& one : made) {
    REQUIRE_MESSAGE(one, to_string(one.error()));
    addresses.insert((*one)->endpoint());
  }
  CHECK(addresses.size() == made.size());
}

TEST_CASE("of sixteen registries on one port one starts, and the others say which port is taken") {
  const auto where = free_address();
  std::array<expected<std::unique_ptr<runtime>>, 16> made;
  std::vector<std::thread> threads;
  for (auto& one : made) threads.emplace_back([&] { one = registry_at(where); });
  for (auto& t : threads) t.join();
  CHECK(std::count_if(made.begin(), made.end(), [](const auto& one) { return one.has_value(); }) == 1);
  for (const auto& one : made)
    if (!one) CHECK_MESSAGE(one.error().detail.find(where) != std::string::npos, to_string(one.error()));
}
