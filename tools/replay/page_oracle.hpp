// Knows what every byte of one side's pool must be at any time: a room's pattern in the tokens it owns,
// poison everywhere else; and says in words what is there instead. Work is done item by item (one page of one
// buffer), so that its caller can do a bounded piece at a time.
#pragma once

#include "tools/replay/page_allocator.hpp"
#include "tools/replay/pattern.hpp"
#include "tools/replay/pool_memory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace handoff::replay {

/// One room's place in the pool.
struct room_pages {
  room_id room;
  std::uint64_t tokens = 0;
  std::vector<page_id> pages;
  std::vector<content_id> contents;  ///< of each page
};

class page_oracle {
 public:
  page_oracle(pool_memory memory, std::uint64_t seed, pool_side side);

  const pool_memory& memory() const { return memory_; }
  room_pages place(room_id room, std::uint64_t tokens, std::vector<page_id> pages);
  std::uint64_t pages_for(std::uint64_t tokens) const;
  /// Items of a room, or of the pool: page_index * buffers + buffer.
  std::uint64_t items(std::uint64_t pages) const { return pages * memory_.buffers().size(); }

  // one item of a room
  void write(const room_pages& room, std::uint64_t item) const;
  void poison(const room_pages& room, std::uint64_t item) const { poison_page(at(room, item), buffer(item)); }
  struct verdict {
    std::uint64_t verified = 0, wrong = 0;  ///< bytes that the room owns
    std::optional<difference> first;
    bool outside = false;  ///< `first` lies behind the room's last token
  };
  verdict verify(const room_pages& room, std::uint64_t item) const;
  /// The item is as `poison` left it.
  std::optional<difference> verify_untouched(const room_pages& room, std::uint64_t item) const;

  // one item of the whole pool
  void poison(std::uint64_t item) const { poison_page(pool_page(item), buffer(item)); }
  std::optional<difference> verify_untouched(std::uint64_t item) const;
  /// Leaves the whole pool as if rooms of an earlier run had used it; from now on `poison` does nothing and
  /// none is expected.
  void age_all();

  /// "room 17 layer 3 key page 2 (pool page 812) token 40 byte 7: expected 0x3f, got 0x12: poison, never
  /// written". `owners` tells whose a page was before.
  std::string explain(const room_pages& room, std::uint64_t item, const difference& found,
                      const page_allocator& owners) const;
  std::string explain(std::uint64_t item, const difference& found, const page_allocator& owners) const;

 private:
  struct spot {
    page_id page;
    std::size_t buffer;
  };

  std::size_t buffer(std::uint64_t item) const { return item % memory_.buffers().size(); }
  page_id pool_page(std::uint64_t item) const {
    return {static_cast<std::uint32_t>(item / memory_.buffers().size())};
  }
  page_id at(const room_pages& room, std::uint64_t item) const {
    return room.pages[item / memory_.buffers().size()];
  }
  std::uint32_t tokens_in(const room_pages& room, std::uint64_t item) const;
  item_key key(content_id content, std::size_t buffer) const;
  void poison_page(page_id page, std::size_t buffer) const;
  std::optional<difference> compare_poison(page_id page, std::size_t buffer, std::uint32_t first_token) const;
  std::string whose(spot where, const difference& found, const page_allocator& owners) const;
  std::string where_and_what(spot where, const difference& found, const page_allocator& owners) const;

  pool_memory memory_;
  std::uint64_t seed_;
  pool_side side_;
  bool aged_ = false;
  std::vector<std::pair<room_id, std::uint64_t>> rooms_;  ///< placed so far, and their pages
};

}  // namespace handoff::replay
