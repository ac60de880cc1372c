// Which pairs, page lists and ranges are refused, and that the text names what differs.
#include "tests/support/small_layout.hpp"
#include "transport/layout/plan.hpp"

#include <functional>

#include <doctest/doctest.h>

namespace handoff {
namespace {

using testing::small_layout;

bool says(const error& e, std::string_view text) {
  return e.detail.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a pair is served though pool sizes, regions and data parallel ranks differ") {
  auto source = small_layout({{.pages = 8}}), sink = small_layout({{.pages = 64}}, 99);
  sink.buffers[1].region = region_id{7};
  sink.buffers[1].region_offset = 4096;
  sink.topology.dp = 4;
  sink.rank.dp = 3;
  CHECK(layout::judge_pair(source, sink) == error{});
}

TEST_CASE("the first difference of a pair is named with both values") {
  struct change {
    const char* text;
    std::function<void(layout_descriptor&)> apply;
  };
  const change changes[] = {
      {"layout version: the source has 1, the sink 2", [](auto& l) { l.version = 2; }},
      {"topology: the source has pp1 cp1 tp1, the sink pp1 cp1 tp2", [](auto& l) { l.topology.tp = 2; }},
      {"rank: the source has pp0 cp0 tp0, the sink pp1 cp0 tp0", [](auto& l) { l.rank.pp = 1; }},
      {"components: the source has 2, the sink 3", [](auto& l) { l.components.emplace_back(); }},
      {"buffers: the source has 5, the sink 4", [](auto& l) { l.buffers.pop_back(); }},
      {"state components: the source has 0, the sink 1", [](auto& l) { l.states.emplace_back(); }},
      {"component 0 kind: the source has kv, the sink state",
       [](auto& l) { l.components[0].kind = component_kind::state; }},
      {"component 0 name: the source has kv0, the sink swa", [](auto& l) { l.components[0].name = "swa"; }},
      {"component 0 tokens per page: the source has 4, the sink 8",
       [](auto& l) { l.components[0].page_tokens = 8; }},
      {"buffer 1 component: the source has 0, the sink 1", [](auto& l) { l.buffers[1].component.value = 1; }},
      {"buffer 1 layer: the source has 0, the sink 5", [](auto& l) { l.buffers[1].layer = 5; }},
      {"buffer 1 kind: the source has value, the sink latent",
       [](auto& l) { l.buffers[1].kind = buffer_kind::latent; }},
      {"buffer 1 memory: the source has host, the sink cuda",
       [](auto& l) { l.buffers[1].memory = memory_kind::cuda; }},
      {"buffer 1 first head: the source has 0, the sink 2", [](auto& l) { l.buffers[1].head_first = 2; }},
      {"buffer 1 heads: the source has 2, the sink 1", [](auto& l) { l.buffers[1].head_count = 1; }},
      {"buffer 1 tokens per page: the source has 4, the sink 2",
       [](auto& l) { l.buffers[1].page_tokens = 2; }},
      {"buffer 1 item bytes: the source has 64, the sink 65", [](auto& l) { l.buffers[1].item_bytes = 65; }},
      {"buffer 1 token stride: the source has 16, the sink 8",
       [](auto& l) { l.buffers[1].token_stride_bytes = 8; }},
      {"buffer 1 head stride: the source has 8, the sink 32",
       [](auto& l) { l.buffers[1].head_stride_bytes = 32; }},
  };
  auto source = small_layout({{}});
  for (const auto& c : changes) {
    auto sink = source;
    c.apply(sink);
    auto e = layout::judge_pair(source, sink);
    INFO(e.detail);
    CHECK(e.code == errc::layout_refused);
    CHECK(says(e, c.text));
    CHECK(layout::plan_chunk(source, sink, {}, {}, 0, {}).error() == e);
    CHECK(layout::plan_totals(source, sink, {}, 0).error() == e);
  }
}

TEST_CASE("state components are refused on equal sides too") {
  auto both = small_layout({{}});
  both.components[1].kind = component_kind::state;
  CHECK(layout::judge_pair(both, both).code == errc::layout_refused);
}

TEST_CASE("page lists are checked against pool, room and borders") {
  auto l = small_layout({{.page_tokens = 4, .pages = 8}});
  auto check = [&](std::vector<component_pages> pages, std::uint64_t tokens) {
    return layout::check_pages(l, pages, tokens);
  };
  component_id kv{0}, rows{1}, none{2};
  CHECK(check({{kv, 0, 0, {{{0}, 2}, {{6}, 1}}}}, 10) == error{});
  CHECK(check({{kv, 0, 0, {{{0}, 8}}}}, 10) == error{});  // more than needed
  CHECK(check({{kv, 8, 0, {{{3}, 1}}}}, 10) == error{});  // only the end is wanted
  CHECK(check({{kv, 0, 10, {}}}, 10) == error{});         // all of it is there already
  CHECK(check({}, 0) == error{});

  struct refusal {
    component_pages pages;
    std::uint64_t tokens;
    errc code;
    const char* text;
  };
  const refusal refusals[] = {
      {{kv, 0, 0, {{{7}, 2}}}, 8, errc::transport_region, "pages [7, 7+2) lie outside of its 8 pages"},
      {{kv, 0, 0, {{{9}, 1}}}, 4, errc::transport_region, "pages [9, 9+1)"},
      {{kv, 0, 0, {{{1}, UINT32_MAX}}}, 4, errc::transport_region, "outside"},
      {{kv, 0, 0, {{{0}, 2}, {{1}, 1}}}, 12, errc::invalid_argument, "page 1 is listed twice"},
      {{kv, 2, 0, {{{0}, 2}}}, 8, errc::invalid_argument, "first token 2"},
      {{kv, 12, 0, {}}, 8, errc::invalid_argument, "first token 12"},
      {{kv, 0, 3, {{{0}, 2}}}, 8, errc::invalid_argument, "prefix 3"},
      {{kv, 0, 12, {{{0}, 2}}}, 8, errc::invalid_argument, "prefix 12"},
      {{kv, 0, 0, {{{0}, 2}}}, 9, errc::coverage_gap, "2 pages of 4 tokens"},
      {{kv, 0, 4, {{{0}, 1}}}, 8, errc::coverage_gap, "1 pages of 4 tokens"},
      {{rows, 0, 0, {{{0}, 1}}}, 4, errc::invalid_argument, "component 1"},
      {{none, 0, 0, {}}, 4, errc::invalid_argument, "component 2"},
  };
  for (const auto& r : refusals) {
    auto e = check({r.pages}, r.tokens);
    INFO(e.detail);
    CHECK(e.code == r.code);
    CHECK(says(e, r.text));
  }
  CHECK(says(check({{kv, 0, 8, {}}, {kv, 0, 8, {}}}, 8), "listed twice"));
  CHECK(check({}, 1).code == errc::coverage_gap);
}

TEST_CASE("a chunk begins and ends on page borders of every component, or with the room") {
  auto l = small_layout({{.page_tokens = 4}, {.page_tokens = 6}});
  CHECK(layout::check_range(l, {0, 12}, 20) == error{});
  CHECK(layout::check_range(l, {12, 20}, 20) == error{});
  CHECK(layout::check_range(l, {20, 20}, 20) == error{});
  for (auto bad : {layout::range{0, 4}, layout::range{4, 12}, layout::range{12, 8}, layout::range{0, 24},
                   layout::range{0, 12, 2, 1}})
    CHECK(layout::check_range(l, bad, 20).code == errc::invalid_argument);
}

}  // namespace handoff
