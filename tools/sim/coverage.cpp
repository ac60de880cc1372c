#include "tools/sim/coverage.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::sim {
namespace {

std::uint64_t at(const tally::cells& cells, std::string_view event, std::string_view state) {
  const auto i = cells.find({event, state});
  return i == cells.end() ? 0 : i->second;
}

const impossible_cell* impossible(const machine_table& t, std::string_view event, std::string_view state) {
  const auto i = std::find_if(t.impossible.begin(), t.impossible.end(),
                              [&](const auto& c) { return c.event == event && c.state == state; });
  return i == t.impossible.end() ? nullptr : &*i;
}

}  // namespace

const std::vector<machine_table>& machine_tables() {
  static const std::vector<machine_table> tables = {
      {"sender",
       {"unclaimed", "offered", "ready", "sending", "confirming", "succeeded", "failed"},
       {"offer", "send", "abort", "announce", "publish", "result", "peer_abort", "peer_lost", "peer_closed",
        "transfer_done", "tick"},
       {},
       [](const tally& t) -> const tally::cells& { return t.sender; }},
      {"receiver",
       {"resolving", "announced", "published", "succeeded", "failed"},
       {"announce", "peer_found", "peer_unavailable", "publish", "progress", "done", "abort", "peer_abort",
        "drained", "peer_lost", "peer_closed", "tick"},
       {},
       [](const tally& t) -> const tally::cells& { return t.receiver; }},
      {"peer session",
       {"connecting", "ready", "suspect", "gone"},
       {"connected", "failed", "silent", "heard", "closed", "control_lost", "control_reconnected",
        "control_refused", "tick"},
       {},
       [](const tally& t) -> const tally::cells& { return t.session; }}};
  return tables;
}

std::vector<std::string> wrong_cells(const tally& counts) {
  std::vector<std::string> out;
  for (const auto& t : machine_tables()) {
    const auto& cells = t.counts(counts);
    for (auto event : t.events)
      for (auto state : t.states) {
        const bool hit = at(cells, event, state) != 0;
        if (hit == (impossible(t, event, state) == nullptr)) continue;
        out.push_back(fmt::format("{}: {} in {} {}", t.machine, event, state,
                                  hit ? "happened, but is listed as impossible" : "never happened"));
      }
    for (const auto& [cell, count] : cells)
      if (std::find(t.events.begin(), t.events.end(), cell.first) == t.events.end() ||
          std::find(t.states.begin(), t.states.end(), cell.second) == t.states.end())
        out.push_back(fmt::format("{}: {} in {} is in no table", t.machine, cell.first, cell.second));
  }
  return out;
}

std::vector<std::string> idle_faults(const tally& counts, const fault_set& allowed) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < fault_count; ++i)
    if (allowed[i] && counts.faults[i] == 0) out.emplace_back(to_string(static_cast<fault>(i)));
  return out;
}

std::string to_table(const tally& counts) {
  std::string out = "faults\n";
  for (std::size_t i = 0; i < fault_count; ++i)
    out += fmt::format("  {:<20} {:>12}\n", to_string(static_cast<fault>(i)), counts.faults[i]);
  out += "ends of rooms, by try\n";
  for (const auto& [name, count] : counts.ends) out += fmt::format("  {:<44} {:>12}\n", name, count);
  out += "also\n";
  for (const auto& [name, count] : counts.other) out += fmt::format("  {:<44} {:>12}\n", name, count);
  for (const auto& t : machine_tables()) {
    out += fmt::format("{:<22}", std::string(t.machine) + ": event x state");
    for (auto state : t.states) out += fmt::format("{:>12}", state);
    out += '\n';
    for (auto event : t.events) {
      out += fmt::format("  {:<20}", event);
      for (auto state : t.states)
        out += impossible(t, event, state) != nullptr
                   ? fmt::format("{:>12}", "-")
                   : fmt::format("{:>12}", at(t.counts(counts), event, state));
      out += '\n';
    }
    for (const auto& c : t.impossible) out += fmt::format("  - {} in {}: {}\n", c.event, c.state, c.why);
  }
  return out;
}

}  // namespace handoff::sim
