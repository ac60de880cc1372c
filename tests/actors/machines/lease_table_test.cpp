// Leases and slots against models that only know lists.
#include "actors/lease/lease_table.hpp"

#include "actors/lease/slot_table.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

namespace handoff {
namespace {

std::vector<component_pages> pages(std::uint16_t component, std::vector<page_run> runs) {
  return {{component_id{component}, 0, 0, std::move(runs)}};
}
room_key room(std::uint64_t number) {
  return {{number}, {1}};
}

}  // namespace

TEST_CASE("a conflict names page, component and the room that holds it, and takes nothing") {
  lease_table table({8, 4});
  auto first = table.reserve(room(1), pages(0, {{{2}, 3}}));
  REQUIRE(first);
  auto second =
      table.reserve(room(2), {{component_id{1}, 0, 0, {{{0}, 4}}}, {component_id{0}, 0, 0, {{{0}, 3}}}});
  REQUIRE_FALSE(second);
  CHECK(second.error().code == errc::pages_conflict);
  CHECK(second.error().detail == "page 2 of component 0 is held by room 1 attempt 1 (reserved)");
  CHECK(table.counts() == lease_counts{1, 3, 0, 0});
  CHECK(table.reserve(room(2), {{component_id{1}, 0, 0, {{{0}, 4}}}, {component_id{0}, 0, 0, {{{0}, 2}}}}));
}

TEST_CASE("pages that do not exist, and pages that are listed twice, are refused") {
  lease_table table({8});
  CHECK(table.reserve(room(1), pages(0, {{{7}, 2}})).error().code == errc::invalid_argument);
  CHECK(table.reserve(room(1), pages(0, {{{9}, 1}})).error().code == errc::invalid_argument);
  CHECK(table.reserve(room(1), pages(1, {{{0}, 1}})).error().code == errc::invalid_argument);
  auto twice = table.reserve(room(1), pages(0, {{{0}, 2}, {{1}, 1}}));
  CHECK(twice.error().detail == "page 1 of component 0 is held by this list already");
  CHECK(table.counts() == lease_counts{});
  CHECK(table.reserve(room(1), pages(0, {{{0}, 8}})));
}

TEST_CASE("only legal transitions end a lease") {
  using enum lease_state;
  const std::vector<lease_state> all{reserved, exposed, quarantined, released};
  const std::map<lease_state, std::vector<lease_state>> path{
      {reserved, {}}, {exposed, {exposed}}, {quarantined, {exposed, quarantined}}, {released, {released}}};
  const std::set<std::pair<lease_state, lease_state>> legal{{reserved, exposed},
                                                            {reserved, released},
                                                            {exposed, quarantined},
                                                            {exposed, released},
                                                            {quarantined, released}};
  for (auto from : all)
    for (auto to : all) {
      lease_table table({4});
      auto lease = table.reserve(room(1), pages(0, {{{0}, 4}})).value();
      for (auto step : path.at(from)) REQUIRE(table.set_state(lease, step) == error{});
      auto before = table.counts();
      auto e = table.set_state(lease, to);
      INFO(to_string(from), " -> ", to_string(to), ": ", e.detail);
      CHECK(bool(e) == !legal.count({from, to}));
      if (e) {
        CHECK(e.code == errc::internal);
        CHECK(table.counts() == before);
      }
    }
}

TEST_CASE("a released lease's id is not taken for its successor") {
  lease_table table({4});
  auto first = table.reserve(room(1), pages(0, {{{0}, 4}})).value();
  REQUIRE(table.set_state(first, lease_state::released) == error{});
  auto second = table.reserve(room(2), pages(0, {{{0}, 4}})).value();
  CHECK(first != second);
  CHECK(table.set_state(first, lease_state::released).code == errc::internal);
  CHECK(table.rekey(first, room(9)).code == errc::internal);
  CHECK(table.rekey(second, {{2}, {7}}) == error{});
  CHECK(table.reserve(room(3), pages(0, {{{3}, 1}})).error().detail ==
        "page 3 of component 0 is held by room 2 attempt 7 (reserved)");
}

TEST_CASE("the lease table agrees with a list of pages over a long random history") {
  constexpr std::uint64_t seed = 7;
  std::mt19937_64 random(seed);
  const std::vector<std::uint64_t> sizes{40, 0, 25};
  lease_table table(sizes);
  struct held {
    lease_state state;
    std::set<std::pair<std::uint16_t, std::uint32_t>> pages;
  };
  std::map<lease_id, held> model;
  std::uint64_t taken = 0, conflicts = 0, illegal = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2) {
      std::vector<component_pages> list;
      std::set<std::pair<std::uint16_t, std::uint32_t>> set;
      bool twice = false;
      for (auto n = random() % 3; n-- > 0;) {
        auto c = static_cast<std::uint16_t>(random() % 2 * 2);
        page_run run{{static_cast<std::uint32_t>(random() % sizes[c])}, 0};
        run.count =
            static_cast<std::uint32_t>(random() % std::min<std::uint64_t>(5, sizes[c] - run.first.value));
        list.push_back({component_id{c}, 0, 0, {run}});
        for (auto p = run.first.value; p < run.first.value + run.count; ++p)
          twice |= !set.insert({c, p}).second;
      }
      bool conflict = twice;
      for (const auto& [id, h] : model)
        for (const auto& p : h.pages) conflict |= set.count(p) != 0;
      auto lease = table.reserve(room(static_cast<std::uint64_t>(step)), list);
      CHECK(lease.has_value() == !conflict);
      conflicts += conflict;
      if (lease) model[*lease] = {lease_state::reserved, set}, ++taken;
    } else if (!model.empty()) {
      auto at = std::next(model.begin(), static_cast<std::ptrdiff_t>(random() % model.size()));
      auto to = static_cast<lease_state>(random() % 4);
      auto from = at->second.state;
      bool ok = to > from && !(from == lease_state::reserved && to == lease_state::quarantined);
      CHECK(bool(table.set_state(at->first, to)) == !ok);
      illegal += !ok;
      if (ok) at->second.state = to;
      if (ok && to == lease_state::released) model.erase(at);
    }
    lease_counts counts;
    for (const auto& [id, h] : model) {
      counts.leases += 1;
      counts.pages += h.pages.size();
      counts.exposed += h.state == lease_state::exposed;
      counts.quarantined += h.state == lease_state::quarantined;
    }
    REQUIRE(table.counts() == counts);
    CHECK(table.move_gate_open() == (counts.exposed + counts.quarantined == 0));
  }
  MESSAGE("seed ", seed, ": ", taken, " leases, ", conflicts, " conflicts, ", illegal,
          " illegal transitions");
  CHECK(taken > 1000);
  CHECK(conflicts > 1000);
}

TEST_CASE("slots have one owner, and a free of somebody else's or a free slot is found") {
  slot_table slots(3);
  auto a = slots.take(room(1)).value();
  CHECK(slots.owner(a) == room(1));
  CHECK(slots.give_back(a, room(2)).code == errc::internal);
  CHECK(slots.rekey(a, room(1), {{1}, {5}}) == error{});
  CHECK(slots.give_back(a, room(1)).code == errc::internal);
  CHECK(slots.give_back(a, {{1}, {5}}) == error{});
  CHECK(slots.give_back(a, {{1}, {5}}).detail == "metadata slot 0 is not held by room 1 attempt 5 but free");
  CHECK(slots.give_back({3}, room(1)).code == errc::internal);
  CHECK(slots.used() == 0);
  CHECK(slot_table(0).take(room(1)).error().code == errc::limit_exceeded);
}

TEST_CASE("the slot that is free for longest is taken first, through every filling") {
  slot_table slots(4);
  std::vector<std::uint32_t> free{0, 1, 2, 3}, taken;
  std::mt19937_64 random(11);
  for (std::uint64_t step = 0; step < 2000; ++step) {
    if (random() % 2) {
      auto slot = slots.take(room(1));
      REQUIRE(slot.has_value() == !free.empty());
      if (!slot) {
        CHECK(slot.error().code == errc::limit_exceeded);
        continue;
      }
      CHECK(slot->value == free.front());
      free.erase(free.begin());
      taken.push_back(slot->value);
    } else if (!taken.empty()) {
      auto at = taken.begin() + static_cast<std::ptrdiff_t>(random() % taken.size());
      CHECK(slots.give_back({*at}, room(1)) == error{});
      free.push_back(*at);
      taken.erase(at);
    }
    CHECK(slots.used() == taken.size());
  }
  CHECK(slots.generation({0}) > 100);
}

}  // namespace handoff
