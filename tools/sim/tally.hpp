// What happened in simulated worlds, as numbers that add up over worlds.
#pragma once

#include "tools/sim/fault.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace handoff::sim {

struct tally {
  /// machine -> (event, state) -> how often.
  using cells = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

  std::array<std::uint64_t, fault_count> faults{};
  cells sender, receiver, session, lease, registry;
  std::map<std::string, std::uint64_t> ends;   ///< how rooms ended
  std::map<std::string, std::uint64_t> other;  ///< landed writes, fences, refused calls and so on
  std::uint64_t worlds = 0, rooms = 0, tries = 0, events = 0;

  std::uint64_t& of(fault kind) { return faults[static_cast<std::size_t>(kind)]; }
  void add(const tally& more);
};

}  // namespace handoff::sim
