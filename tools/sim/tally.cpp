#include "tools/sim/tally.hpp"

namespace handoff::sim {

void tally::add(const tally& more) {
  for (std::size_t i = 0; i < fault_count; ++i) faults[i] += more.faults[i];
  for (const auto& [cell, count] : more.sender) sender[cell] += count;
  for (const auto& [cell, count] : more.receiver) receiver[cell] += count;
  for (const auto& [cell, count] : more.session) session[cell] += count;
  for (const auto& [cell, count] : more.lease) lease[cell] += count;
  for (const auto& [cell, count] : more.registry) registry[cell] += count;
  for (const auto& [name, count] : more.ends) ends[name] += count;
  for (const auto& [name, count] : more.other) other[name] += count;
  worlds += more.worlds;
  rooms += more.rooms;
  tries += more.tries;
  events += more.events;
}

}  // namespace handoff::sim
