#include "actors/lease/lease_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

bool legal(lease_state from, lease_state to) {
  switch (from) {
    case lease_state::reserved:
      return to == lease_state::exposed || to == lease_state::released;
    case lease_state::exposed:
      return to == lease_state::quarantined || to == lease_state::released;
    case lease_state::quarantined:
      return to == lease_state::released;
    case lease_state::released:
      return false;
  }
  return false;
}

error unknown_lease(lease_id lease) {
  return {errc::internal, fmt::format("lease {:#x} is not held", lease.value), {}};
}

}  // namespace

std::string_view to_string(lease_state state) {
  switch (state) {
    case lease_state::reserved:
      return "reserved";
    case lease_state::exposed:
      return "exposed";
    case lease_state::quarantined:
      return "quarantined";
    case lease_state::released:
      return "released";
  }
  return "invalid";
}

lease_table::lease_table(const std::vector<std::uint64_t>& pages, event_log events)
    : events_(std::move(events)) {
  for (auto count : pages) owners_.emplace_back(count, 0);
}

lease_table::entry* lease_table::find(lease_id lease) {
  auto place = static_cast<std::uint32_t>(lease.value);
  if (place >= entries_.size()) return nullptr;
  auto& e = entries_[place];
  return e.state != lease_state::released && e.uses == lease.value >> 32 ? &e : nullptr;
}

expected<lease_id> lease_table::reserve(room_key key, const std::vector<component_pages>& pages) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  auto place = free_.back();
  error conflict;
  auto taken = take(place, pages, conflict);
  if (conflict) {
    give_back(place, pages, taken);
    return unexpected(std::move(conflict));
  }
  free_.pop_back();
  auto& e = entries_[place];
  e.key = key;
  e.state = lease_state::reserved;
  e.uses += 1;
  e.page_count = taken;
  e.pages = pages;
  counts_.leases += 1;
  counts_.pages += taken;
  return lease_id{std::uint64_t{e.uses} << 32 | place};
}

// Marks pages in list order; returns how many it marked before the conflict, if there was one.
std::uint64_t lease_table::take(std::uint32_t place, const std::vector<component_pages>& pages,
                                error& conflict) {
  std::uint64_t taken = 0;
  for (const auto& part : pages) {
    auto c = part.component.value;
    auto size = c < owners_.size() ? owners_[c].size() : 0;
    for (auto run : part.runs) {
      if (run.first.value > size || run.count > size - run.first.value) {
        conflict = {errc::invalid_argument,
                    fmt::format("pages [{}, {}+{}) of component {} lie outside of its {} pages",
                                run.first.value, run.first.value, run.count, c, size),
                    {}};
        return taken;
      }
      for (std::uint64_t p = run.first.value; p < std::uint64_t{run.first.value} + run.count; ++p, ++taken) {
        auto& owner = owners_[c][p];
        if (owner != 0) {
          auto held_by = owner - 1 == place ? "this list already"
                                            : to_string(entries_[owner - 1].key) + " (" +
                                                  std::string(to_string(entries_[owner - 1].state)) + ")";
          conflict = {
              errc::pages_conflict, fmt::format("page {} of component {} is held by {}", p, c, held_by), {}};
          return taken;
        }
        owner = place + 1;
      }
    }
  }
  return taken;
}

void lease_table::give_back(std::uint32_t place, const std::vector<component_pages>& pages,
                            std::uint64_t count) {
  for (const auto& part : pages)
    for (auto run : part.runs) {
      auto n = std::min<std::uint64_t>(run.count, count);
      for (std::uint64_t p = run.first.value; p < run.first.value + n; ++p) {
        auto& owner = owners_[part.component.value][p];
        if (owner == place + 1) owner = 0;
      }
      count -= n;
      if (count == 0) return;
    }
}

error lease_table::set_state(lease_id lease, lease_state state) {
  auto* e = find(lease);
  if (!e) return unknown_lease(lease);
  if (events_) events_(to_string(e->state), to_string(state));
  if (!legal(e->state, state))
    return {errc::internal,
            fmt::format("the lease of {} cannot go from {} to {}", to_string(e->key), to_string(e->state),
                        to_string(state)),
            {}};
  counts_.exposed -= e->state == lease_state::exposed;
  counts_.quarantined -= e->state == lease_state::quarantined;
  counts_.exposed += state == lease_state::exposed;
  counts_.quarantined += state == lease_state::quarantined;
  e->state = state;
  if (state == lease_state::released) {
    auto place = static_cast<std::uint32_t>(lease.value);
    give_back(place, e->pages, e->page_count);
    counts_.leases -= 1;
    counts_.pages -= e->page_count;
    e->pages.clear();
    free_.push_back(place);
  }
  return {};
}

std::optional<lease_holder> lease_table::holder(component_id component, page_id page) const {
  if (component.value >= owners_.size() || page.value >= owners_[component.value].size()) return {};
  auto owner = owners_[component.value][page.value];
  if (owner == 0) return {};
  const auto& e = entries_[owner - 1];
  return lease_holder{e.key, e.state};
}

error lease_table::rekey(lease_id lease, room_key key) {
  auto* e = find(lease);
  if (!e) return unknown_lease(lease);
  if (events_) events_(to_string(e->state), "rekey");
  e->key = key;
  return {};
}

}  // namespace handoff
