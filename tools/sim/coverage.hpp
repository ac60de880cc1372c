// The tables of the machines: which event met which state how often, and which cannot.
#pragma once

#include "tools/sim/tally.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace handoff::sim {

/// A cell that no run reaches, or, where it is `rare`, that a run may do without.
struct impossible_cell {
  std::string_view event, state, why;
  bool rare = false;
};

struct machine_table {
  std::string_view machine;
  std::vector<std::string_view> states, events;
  std::vector<impossible_cell> impossible;
  const tally::cells& (*counts)(const tally&);
};

const std::vector<machine_table>& machine_tables();

/// "sender: publish in failed": neither hit nor listed as impossible; and cells that are listed, and were
/// hit.
std::vector<std::string> wrong_cells(const tally& counts);
/// Faults that never happened although they were allowed.
std::vector<std::string> idle_faults(const tally& counts, const fault_set& allowed);

/// Everything as tables, for people.
std::string to_table(const tally& counts);

}  // namespace handoff::sim
