#include "tools/replay/page_allocator.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::replay {

page_allocator::page_allocator(std::uint64_t pages, std::uint64_t seed) : owners_(pages), random_(seed) {
  for (std::uint64_t i = 0; i < pages; ++i) free_.push_back({static_cast<std::uint32_t>(i)});
  // Not std::shuffle: its use of the generator differs between standard libraries.
  for (std::uint64_t i = pages; i > 1; --i) std::swap(free_[i - 1], free_[random_() % i]);
}

std::optional<std::vector<page_id>> page_allocator::allocate(std::uint64_t count, room_id owner) {
  if (count > free_.size()) return std::nullopt;
  std::vector<page_id> pages;
  pages.reserve(count);
  while (pages.size() < count) {
    const bool newest = random_() % 2 == 0;
    const auto page = newest ? free_.back() : free_.front();
    if (newest)
      free_.pop_back();
    else
      free_.pop_front();
    owners_[page.value].now = owner;
    pages.push_back(page);
  }
  return pages;
}

error page_allocator::release(std::span<const page_id> pages, room_id owner) {
  const auto refuse = [&](page_id page, std::string why) {
    return error{errc::pages_conflict,
                 fmt::format("room {} gives back page {}, {}", owner.value, page.value, why),
                 {}};
  };
  std::vector<page_id> sorted(pages.begin(), pages.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto page = sorted[i];
    if (page.value >= owners_.size())
      return refuse(page, fmt::format("but the pool has {} pages", owners_.size()));
    if (i > 0 && sorted[i - 1] == page) return refuse(page, "twice in one list");
    const auto now = owners_[page.value].now;
    if (!now) return refuse(page, "which is free already");
    if (*now != owner) return refuse(page, fmt::format("which belongs to room {}", now->value));
  }
  for (const auto page : pages) {
    owners_[page.value] = {std::nullopt, owner};
    if (random_() % 2 == 0)
      free_.push_back(page);
    else
      free_.push_front(page);
  }
  return {};
}

}  // namespace handoff::replay
