// Many worlds, each of its own seed, on several threads; and the search for the least that still fails.
#pragma once

#include "tools/sim/world.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace handoff::sim {

struct run_options {
  world_options world;      ///< its seed is the first world's
  std::uint64_t rooms = 0;  ///< of all worlds together; the last one has what is left
  unsigned jobs = 1;
  std::uint64_t failures_max = 5;  ///< no world begins after so many have failed
};

struct failure {
  world_options world;
  std::uint64_t rooms_before = 0;  ///< that went well in worlds with smaller seeds, and its own
  std::vector<std::string> violations;
};

struct run_result {
  tally counts;
  std::vector<failure> failures;  ///< by seed
  std::uint64_t digest = 0;       ///< of all worlds
  double elapsed_s = 0;
};

/// `progress` is told the rooms that are done, from any thread, one at a time.
run_result run(const run_options& options, const std::function<void(std::uint64_t)>& progress);

struct shrunk {
  world_options world;
  std::vector<std::string> violations;
  std::size_t runs = 0;
};

/// Leaves out rooms, faults and events while something still breaks. Greedy, at most `runs_max` worlds.
shrunk shrink(const world_options& failing, std::size_t runs_max);

/// The options of `handoff sim` that run exactly this world.
std::string command_line(const world_options& world);

}  // namespace handoff::sim
