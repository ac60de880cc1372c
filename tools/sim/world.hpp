// One simulated world from one seed: a bootstrap, prefill and decode engines, their network, a workload and
// its faults. Everything that may go on, goes on until every room has ended; then nothing may be left.
#pragma once

#include "tools/sim/tally.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace handoff::sim {

struct world_options {
  std::uint64_t seed = 1;
  std::uint32_t rooms = 40;
  std::uint32_t prefill = 2, decode = 2;
  fault_set faults;
  /// Left out by number, to find what a failure needs.
  std::set<std::uint32_t> without_rooms, without_events;
  bool traced = false;  ///< keep the list of events
};

struct world_result {
  std::vector<std::string> violations;  ///< what broke; empty is good
  std::vector<std::string> lines;       ///< the list of events, if traced
  std::uint64_t digest = 0;             ///< equal digests: the same happened
  std::uint32_t rooms = 0;              ///< that were not left out
  std::uint32_t events = 0;             ///< freezes, crashes, partitions and so on that the seed has
  fault_set active;                     ///< what this seed suffers of what it may
  tally counts;
};

world_result run_world(const world_options& options);

}  // namespace handoff::sim
