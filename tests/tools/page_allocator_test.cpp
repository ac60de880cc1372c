#include "tools/replay/page_allocator.hpp"

#include <map>
#include <set>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::replay;

TEST_CASE("pages are scattered from the start and each is given out once") {
  page_allocator pool(64, 1);
  const auto pages = pool.allocate(64, {7});
  REQUIRE(pages);
  CHECK(std::set<page_id>(pages->begin(), pages->end()).size() == 64);
  std::size_t neighbours = 0;
  for (std::size_t i = 1; i < pages->size(); ++i)
    neighbours += (*pages)[i].value == (*pages)[i - 1].value + 1;
  CHECK(neighbours < 8);
  CHECK(pool.available() == 0);
  CHECK_FALSE(pool.allocate(1, {8}));
  CHECK(pool.allocate(0, {8}));
}

TEST_CASE("a seed gives the same pages again, another seed other ones") {
  const auto first = page_allocator(32, 5).allocate(8, {1});
  CHECK(first == page_allocator(32, 5).allocate(8, {1}));
  CHECK(first != page_allocator(32, 6).allocate(8, {1}));
}

TEST_CASE("a page knows its owner and the one before") {
  page_allocator pool(2, 1);
  const auto pages = *pool.allocate(2, {0});
  CHECK(pool.owner(pages[0]) == room_id{0});
  CHECK_FALSE(pool.previous_owner(pages[0]));
  CHECK_FALSE(pool.release(pages, {0}));
  CHECK_FALSE(pool.owner(pages[0]));
  CHECK(pool.previous_owner(pages[0]) == room_id{0});
}

TEST_CASE("giving back what one does not own changes nothing and is named") {
  page_allocator pool(4, 1);
  const auto mine = *pool.allocate(2, {1}), other = *pool.allocate(1, {2});
  const auto refused = [&](std::vector<page_id> pages, std::string_view text) {
    const auto e = pool.release(pages, {1});
    CHECK(e.code == errc::pages_conflict);
    CHECK_MESSAGE(e.detail.find(text) != std::string::npos, e.detail);
    CHECK(pool.available() == 1);
  };
  refused({mine[0], other[0]}, "belongs to room 2");
  refused({mine[0], mine[1], mine[0]}, "twice");
  refused({{99}}, "the pool has 4 pages");
  CHECK_FALSE(pool.release(mine, {1}));
  CHECK(pool.available() == 3);
  const auto again = pool.release(mine, {1});
  CHECK(again.code == errc::pages_conflict);
  CHECK(again.detail.find("free already") != std::string::npos);
}

TEST_CASE("a long run of rooms never shares a page and ends where it began") {
  constexpr std::uint64_t seed = 11;
  INFO("seed ", seed);
  std::mt19937_64 random(seed);
  page_allocator pool(100, seed);
  std::map<std::uint64_t, std::vector<page_id>> rooms;
  std::uint64_t held = 0;
  for (std::uint64_t step = 0; step < 5000; ++step) {
    if (random() % 2 == 0) {
      const auto count = random() % 12;
      if (auto pages = pool.allocate(count, {step})) {
        held += count;
        rooms.emplace(step, std::move(*pages));
      } else {
        REQUIRE(pool.available() < count);
      }
    } else if (!rooms.empty()) {
      const auto it = std::next(rooms.begin(), static_cast<std::ptrdiff_t>(random() % rooms.size()));
      held -= it->second.size();
      REQUIRE_FALSE(pool.release(it->second, {it->first}));
      rooms.erase(it);
    }
    REQUIRE(pool.available() + held == 100);
  }
  std::set<page_id> owned;
  for (const auto& [room, pages] : rooms)
    for (const auto page : pages) {
      CHECK(owned.insert(page).second);
      CHECK(pool.owner(page) == room_id{room});
    }
}
