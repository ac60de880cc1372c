// Page ids as a long-running engine hands them out: the free list is shuffled at the start, pages come back
// at either end and are taken from either end, so that a room's pages are scattered and soon reused. Pure.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace handoff::replay {

class page_allocator {
 public:
  page_allocator(std::uint64_t pages, std::uint64_t seed);

  /// No value while fewer pages are free.
  std::optional<std::vector<page_id>> allocate(std::uint64_t count, room_id owner);
  /// pages_conflict, with nothing changed: a page is unknown, free already, named twice, or another room's;
  /// the text names it.
  error release(std::span<const page_id> pages, room_id owner);

  std::uint64_t total() const { return owners_.size(); }
  std::uint64_t available() const { return free_.size(); }
  std::optional<room_id> owner(page_id page) const { return owners_[page.value].now; }
  std::optional<room_id> previous_owner(page_id page) const { return owners_[page.value].before; }

 private:
  struct ownership {
    std::optional<room_id> now, before;
  };

  std::deque<page_id> free_;
  std::vector<ownership> owners_;
  std::mt19937_64 random_;
};

}  // namespace handoff::replay
