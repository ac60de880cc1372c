// One simulated world from one seed: a bootstrap, prefill and decode engines, their network, a workload and
// its faults. Everything that may go on, goes on until every room has ended; then nothing may be left.
#pragma once

#include "tools/sim/tally.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace handoff::sim {

struct world_options {
  std::uint64_t seed = 1;
  std::uint32_t rooms = 40;
  std::uint32_t prefill = 2, decode = 2;
  fault_set faults;
  double share = 0;  ///< of the faults that one world suffers; 0: all of a few, some of many
  /// By number: the only ones that happen; unset: all. What is left out does not change the others.
  std::optional<std::set<std::uint32_t>> only_rooms, only_events;
  bool traced = false;  ///< keep the list of events
  /// A mistake to be found: an engine never hears of the release of a sink room that was aborted.
  bool planted = false;
};

struct world_result {
  std::vector<std::string> violations;  ///< what broke; empty is good
  std::vector<std::string> lines;       ///< the list of events, if traced
  std::uint64_t digest = 0;             ///< equal digests: the same happened
  std::set<std::uint32_t> events;       ///< numbers of the crashes, partitions and so on that happened
  fault_set active;                     ///< what this seed suffers of what it may
  tally counts;
};

world_result run_world(const world_options& options);

}  // namespace handoff::sim
