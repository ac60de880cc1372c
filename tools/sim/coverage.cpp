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

// -- what cannot happen, and why ---------------------------------------------------------------------------

using cells = std::vector<impossible_cell>;

void list(cells& out, std::initializer_list<std::string_view> events,
          std::initializer_list<std::string_view> states, std::string_view why, bool rare = false) {
  for (auto event : events)
    for (auto state : states) out.push_back({event, state, why, rare});
}

cells not_of_senders() {
  cells out;
  list(out, {"offer"}, {"offered", "ready", "sending", "confirming", "failed"},
       "source_rooms refuses a second offer, and an unclaimed room that fails is finished at once");
  list(out,
       {"offer", "send", "abort", "announce", "publish", "result", "peer_abort", "peer_lost", "peer_closed",
        "transfer_done", "tick"},
       {"succeeded"},
       "the last write has drained before room_done leaves: who succeeds is finished in the same step");
  list(out, {"transfer_done"}, {"unclaimed", "offered", "ready"}, "nothing was submitted yet");
  list(out, {"transfer_done"}, {"confirming"}, "every write has drained before this state");
  list(out, {"send"}, {"unclaimed"}, "needs a refused offer of a room that its sink keeps open", true);
  list(out, {"result"}, {"ready"}, "needs a word about the attempt's first life", true);
  return out;
}

cells not_of_receivers() {
  cells out;
  list(out, {"announce"}, {"announced", "published", "failed"}, "sink_rooms refuses a second announce");
  list(out, {"publish"}, {"resolving", "published", "failed"},
       "sink_rooms refuses it before the machine sees it");
  list(out,
       {"announce", "peer_found", "peer_unavailable", "publish", "progress", "done", "abort", "peer_abort",
        "drained", "peer_lost", "peer_closed", "tick"},
       {"succeeded"}, "success releases the lease: the room is finished in the same step");
  list(out, {"peer_unavailable"}, {"announced", "published", "failed"},
       "needs a room that waits twice for its peer, and a connect that fails after one that did not", true);
  list(out, {"peer_found"}, {"announced", "published", "failed"},
       "needs a room that waits twice for its peer", true);
  list(out, {"progress", "done", "peer_abort", "drained"}, {"resolving"},
       "needs a frame of an older attempt from a session that rooms were told is gone", true);
  list(out, {"progress", "done"}, {"announced"}, "needs a late frame of an older attempt", true);
  return out;
}

cells not_of_sessions() {
  cells out;
  list(out, {"connected"}, {"ready", "suspect"}, "a transport says ready once");
  list(out, {"silent"}, {"connecting"}, "a transport listens for silence from ready on");
  list(out, {"heard"}, {"connecting", "ready"}, "only a silent peer is heard again, and silence is a doubt");
  list(out, {"closed"}, {"connecting", "ready", "suspect", "gone"},
       "the peer desk drops the session with its endpoint");
  list(out, {"control_reconnected", "control_refused"}, {"connecting", "ready"},
       "only a suspect peer is dialled again");
  list(out, {"tick"}, {"ready", "gone"}, "no deadline there");
  list(out, {"connected", "silent", "heard", "control_reconnected"}, {"gone"},
       "needs an event that the fence has overtaken", true);
  return out;
}

cells not_of_leases() {
  cells out;
  list(out, {"quarantined"}, {"reserved", "quarantined"},
       "a room that ends while no address is out is released at once");
  list(out, {"exposed"}, {"exposed", "quarantined"},
       "pages are exposed once, and never after their room has ended");
  list(out, {"reserved"}, {"reserved", "exposed", "quarantined"}, "a lease begins there");
  list(out, {"rekey"}, {"exposed", "quarantined"}, "an offer adopts its attempt before anything is written");
  return out;
}

cells not_of_registries() {
  cells out;
  list(out, {"expire"}, {"absent", "other_life", "replaced"}, "what expires is what is registered");
  list(out, {"unregister"}, {"absent", "registered", "other_life", "replaced"},
       "engines end by crashing here; registry_machine_test has it");
  list(out, {"register"}, {"replaced"},
       "needs a partition that outlasts a crash and the next life's registration", true);
  return out;
}

}  // namespace

const std::vector<machine_table>& machine_tables() {
  static const std::vector<machine_table> tables = {
      {"sender",
       {"unclaimed", "offered", "ready", "sending", "confirming", "succeeded", "failed"},
       {"offer", "send", "abort", "announce", "publish", "result", "peer_abort", "peer_lost", "peer_closed",
        "transfer_done", "tick"},
       not_of_senders(),
       [](const tally& t) -> const tally::cells& { return t.sender; }},
      {"receiver",
       {"resolving", "announced", "published", "succeeded", "failed"},
       {"announce", "peer_found", "peer_unavailable", "publish", "progress", "done", "abort", "peer_abort",
        "drained", "peer_lost", "peer_closed", "tick"},
       not_of_receivers(),
       [](const tally& t) -> const tally::cells& { return t.receiver; }},
      {"peer session",
       {"connecting", "ready", "suspect", "gone"},
       {"connected", "failed", "silent", "heard", "closed", "control_lost", "control_reconnected",
        "control_refused", "tick"},
       not_of_sessions(),
       [](const tally& t) -> const tally::cells& { return t.session; }},
      {"lease",
       {"reserved", "exposed", "quarantined"},
       {"reserved", "exposed", "quarantined", "released", "rekey"},
       not_of_leases(),
       [](const tally& t) -> const tally::cells& { return t.lease; }},
      {"registry",
       {"absent", "registered", "other_life", "replaced"},
       {"register", "unregister", "expire"},
       not_of_registries(),
       [](const tally& t) -> const tally::cells& { return t.registry; }}};
  return tables;
}

std::vector<std::string> wrong_cells(const tally& counts) {
  std::vector<std::string> out;
  for (const auto& t : machine_tables()) {
    const auto& cells = t.counts(counts);
    for (auto event : t.events)
      for (auto state : t.states) {
        const bool hit = at(cells, event, state) != 0;
        const auto* listed = impossible(t, event, state);
        if (hit == (listed == nullptr) || (listed != nullptr && listed->rare)) continue;
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
        out += at(t.counts(counts), event, state) == 0 && impossible(t, event, state) != nullptr
                   ? fmt::format("{:>12}", "-")
                   : fmt::format("{:>12}", at(t.counts(counts), event, state));
      out += '\n';
    }
    for (const auto& c : t.impossible)
      out += fmt::format("  {} {} in {}: {}\n", c.rare ? "rare" : "-", c.event, c.state, c.why);
  }
  return out;
}

}  // namespace handoff::sim
