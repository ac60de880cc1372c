// Who owns which pages: leases of (room, attempt) on the pages of a rank's components. One per pool; the
// source's and the sink's rooms of a runtime share it, so that neither takes a page of the other. Pure.
//
//   reserved -> exposed -> released
//   exposed -> quarantined -> released      the room has ended, a writer may still write
//   reserved -> released                    no address ever left the process
#pragma once

#include "actors/room/room_effects.hpp"
#include "actors/room/state_clock.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace handoff {

/// Never reused: the upper half counts the uses of one place in the table.
using lease_id = strong_id<struct lease_tag, std::uint64_t>;

struct lease_counts {
  std::uint64_t leases = 0, pages = 0, exposed = 0, quarantined = 0;
  friend bool operator==(const lease_counts&, const lease_counts&) = default;
};

struct lease_holder {
  room_key key;
  lease_state state = lease_state::reserved;
};

class lease_table {
 public:
  /// `pages` by component, as in layout_descriptor::components. Components without pages have 0.
  explicit lease_table(const std::vector<std::uint64_t>& pages, event_log events = {});

  /// All pages of the list or none. pages_conflict names page, component and the room that holds it;
  /// invalid_argument: no such component or page.
  expected<lease_id> reserve(room_key key, const std::vector<component_pages>& pages);

  /// Legal transitions only, else `internal` and nothing changed. `released` frees the pages and the id.
  error set_state(lease_id lease, lease_state state);

  /// The room adopted an attempt.
  error rekey(lease_id lease, room_key key);

  /// Who holds this page, and how far its lease is.
  std::optional<lease_holder> holder(component_id component, page_id page) const;
  lease_counts counts() const { return counts_; }
  /// May a unified memory pool move pages now? Only while no address is out.
  bool move_gate_open() const { return counts_.exposed == 0 && counts_.quarantined == 0; }

 private:
  struct entry {
    room_key key;
    lease_state state = lease_state::released;
    std::uint32_t uses = 0;
    std::uint64_t page_count = 0;
    std::vector<component_pages> pages;
  };

  entry* find(lease_id lease);
  std::uint64_t take(std::uint32_t place, const std::vector<component_pages>& pages, error& conflict);
  void give_back(std::uint32_t place, const std::vector<component_pages>& pages, std::uint64_t count);

  std::vector<std::vector<std::uint32_t>> owners_;  ///< component, page -> place in entries_ + 1; 0: free
  std::vector<entry> entries_;
  std::vector<std::uint32_t> free_;
  lease_counts counts_;
  event_log events_;
};

}  // namespace handoff
