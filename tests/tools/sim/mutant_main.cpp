// A simulator over machines with one deliberate mistake: must be caught. Arguments: rooms at most, faults.
#include "tools/sim/runner.hpp"

#include <cstdlib>

#include <fmt/format.h>

int main(int argc, char** argv) {
  handoff::sim::run_options options;
  options.world.faults = *handoff::sim::parse_faults(argc > 2 ? argv[2] : "all");
  options.rooms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 40'000;
  options.failures_max = 1;
  const auto result = handoff::sim::run(options, {});
  if (result.failures.empty()) {
    fmt::print("not caught in {} rooms\n", result.counts.rooms);
    return 1;
  }
  const auto& first = result.failures.front();
  fmt::print("caught in {} rooms: {}\n", first.rooms_before, first.violations.front());
  return 0;
}
