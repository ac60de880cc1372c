// Plans by hand: what exactly is copied where.
#include "transport/layout/plan.hpp"

#include "tests/support/small_layout.hpp"

#include <doctest/doctest.h>

namespace handoff {
namespace {

using testing::small_layout;
using transport::block;

// 4 tokens of 16 bytes a page: 64-byte items; layer 0 only, key in region 0, value in region 1.
layout_descriptor one_layer() {
  return small_layout({{.layers = {0}}});
}
std::vector<component_pages> pages(std::vector<page_run> runs, std::uint64_t prefix = 0) {
  return {{component_id{0}, 0, prefix, std::move(runs)}};
}
block copy(std::uint32_t region, std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  return {region_id{region}, from, region_id{region}, to, bytes};
}

}  // namespace

TEST_CASE("pages that continue on both sides are one block, others are not") {
  auto l = one_layer();
  auto plan = layout::plan_chunk(l, l, pages({{{2}, 3}}), pages({{{8}, 2}, {{1}, 1}}), 12, {0, 12});
  REQUIRE(plan);
  CHECK(plan->blocks == std::vector<block>{copy(0, 128, 512, 128), copy(0, 256, 64, 64),
                                           copy(1, 128, 512, 128), copy(1, 256, 64, 64)});
  CHECK(plan->sum.bytes == 384);
  CHECK(plan->sum.coverage == std::vector<component_coverage>{{component_id{0}, 0, 12, 384}});
}

TEST_CASE("runs that meet are one block though they were listed apart") {
  auto l = one_layer();
  auto plan = layout::plan_chunk(l, l, pages({{{2}, 1}, {{3}, 1}}), pages({{{8}, 2}}), 8, {0, 8});
  REQUIRE(plan);
  CHECK(plan->blocks == std::vector<block>{copy(0, 128, 512, 128), copy(1, 128, 512, 128)});
}

TEST_CASE("of a last page that is not full only its tokens move, where they are contiguous") {
  auto tokens_first = one_layer(), heads_first = small_layout({{.layers = {0}, .heads_first = true}});
  auto some = layout::plan_chunk(tokens_first, tokens_first, pages({{{0}, 2}}), pages({{{0}, 2}}), 5, {0, 5});
  auto whole = layout::plan_chunk(heads_first, heads_first, pages({{{0}, 2}}), pages({{{0}, 2}}), 5, {0, 5});
  REQUIRE((some && whole));
  CHECK(some->blocks == std::vector<block>{copy(0, 0, 0, 80), copy(1, 0, 0, 80)});
  CHECK(whole->blocks == std::vector<block>{copy(0, 0, 0, 128), copy(1, 0, 0, 128)});
}

TEST_CASE("what the sink holds already is left out, and a full prefix leaves nothing") {
  auto l = one_layer();
  auto rest = layout::plan_chunk(l, l, pages({{{0}, 3}}), pages({{{5}, 3}}, 8), 10, {0, 10});
  REQUIRE(rest);
  CHECK(rest->blocks == std::vector<block>{copy(0, 128, 448, 32), copy(1, 128, 448, 32)});
  auto nothing = layout::plan_chunk(l, l, pages({{{0}, 3}}), pages({}, 10), 10, {0, 10});
  REQUIRE(nothing);
  CHECK(nothing->blocks.empty());
  CHECK(nothing->sum == layout::totals{});
  CHECK(layout::plan_totals(l, l, pages({}, 10), 10) == layout::totals{});
}

TEST_CASE("tokens before the sink's first page are not owed") {
  auto l = one_layer();
  std::vector<component_pages> end{{component_id{0}, 8, 0, {{{4}, 1}}}};
  auto plan = layout::plan_chunk(l, l, pages({{{0}, 3}}), end, 12, {0, 12});
  REQUIRE(plan);
  CHECK(plan->blocks == std::vector<block>{copy(0, 128, 256, 64), copy(1, 128, 256, 64)});
  CHECK(layout::owed_from(end[0], 12) == 8);
}

TEST_CASE("a layer range takes the buffers of these layers") {
  auto l = small_layout({{.layers = {3, 7, 9}}});
  auto plan = layout::plan_chunk(l, l, pages({{{0}, 1}}), pages({{{1}, 1}}), 4, {0, 4, 4, 9});
  REQUIRE(plan);
  CHECK(plan->blocks == std::vector<block>{copy(2, 0, 64, 64), copy(3, 0, 64, 64)});
}

TEST_CASE("missing and foreign pages are refused by name") {
  auto l = one_layer();
  auto code = [&](auto from, auto to) {
    auto plan = layout::plan_chunk(l, l, from, to, 12, {0, 12});
    REQUIRE_FALSE(plan);
    return plan.error().code;
  };
  CHECK(code(pages({{{0}, 2}}), pages({{{0}, 3}})) == errc::coverage_gap);
  CHECK(code(pages({{{0}, 3}}), pages({{{0}, 2}})) == errc::coverage_gap);
  CHECK(code(std::vector<component_pages>{}, pages({{{0}, 3}})) == errc::coverage_gap);
  CHECK(code(pages({{{0}, 3}}), std::vector<component_pages>{}) == errc::coverage_gap);
  CHECK(code(std::vector<component_pages>{{component_id{0}, 4, 0, {{{0}, 3}}}}, pages({{{0}, 3}})) ==
        errc::coverage_gap);
  CHECK(code(pages({{{30}, 3}}), pages({{{0}, 3}})) == errc::transport_region);
  CHECK(code(pages({{{0}, 3}}), pages({{{30}, 3}})) == errc::transport_region);
}

TEST_CASE("addresses that do not fit 64 bits are refused") {
  auto l = one_layer();
  for (bool offset : {true, false}) {
    auto far = l;
    if (offset) far.buffers[1].region_offset = UINT64_MAX - 63;
    auto near = far;
    if (!offset)
      for (auto* side : {&far, &near}) side->buffers[0].item_bytes = UINT64_MAX / 2;
    auto plan = layout::plan_chunk(far, near, pages({{{3}, 1}}), pages({{{3}, 1}}), 4, {0, 4});
    REQUIRE_FALSE(plan);
    CHECK(plan.error().code == errc::invalid_argument);
  }
}

TEST_CASE("the digest tells pages, their order, their tokens and their number apart") {
  auto l = one_layer();
  auto digest = [&](std::vector<component_pages> p, std::uint64_t tokens) {
    auto sum = layout::plan_totals(l, l, p, tokens);
    REQUIRE(sum);
    return sum->digest;
  };
  auto base = digest(pages({{{4}, 3}}), 12);
  CHECK(base == digest(pages({{{4}, 1}, {{5}, 2}}), 12));
  CHECK(base != digest(pages({{{5}, 1}, {{4}, 1}, {{6}, 1}}), 12));
  CHECK(base != digest(pages({{{5}, 3}}), 12));
  CHECK(base != digest(pages({{{4}, 3}}), 11));
  CHECK(base != digest(pages({{{4}, 3}}, 4), 12));
}

}  // namespace handoff
