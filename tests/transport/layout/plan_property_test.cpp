// Random layouts, page lists, prefixes and cuttings, against a byte map that knows nothing of the planner: it
// walks tokens and heads by the strides of the descriptors.
#include "tests/support/small_layout.hpp"
#include "transport/layout/plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

namespace handoff {
namespace {

using rng = std::mt19937_64;

std::uint64_t pick(rng& random, std::uint64_t first, std::uint64_t last) {
  return first + random() % (last - first + 1);
}

struct room {
  layout_descriptor source, sink;
  std::vector<component_pages> source_pages, sink_pages;
  std::vector<std::vector<std::uint32_t>> source_list, sink_list;  ///< by component: pages, one by one
  std::uint64_t tokens = 0;
};

std::vector<std::uint32_t> draw_pages(rng& random, std::uint64_t pages, std::uint64_t count) {
  std::vector<std::uint32_t> all(pages);
  std::iota(all.begin(), all.end(), 0);
  // Half of the lists are runs with a few breaks, half are shuffled.
  if (random() % 2 == 0)
    std::shuffle(all.begin(), all.end(), random);
  else
    std::rotate(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(random() % pages), all.end());
  all.resize(count);
  return all;
}

std::vector<page_run> as_runs(const std::vector<std::uint32_t>& list) {
  std::vector<page_run> runs;
  for (auto p : list)
    if (!runs.empty() && runs.back().first.value + runs.back().count == p)
      ++runs.back().count;
    else
      runs.push_back({{p}, 1});
  return runs;
}

room draw_room(rng& random) {
  room r;
  std::vector<testing::small_component> a, b;
  static constexpr std::uint32_t sizes[] = {1, 2, 4, 8};
  for (std::uint64_t c = pick(random, 1, 3); c > 0; --c) {
    testing::small_component k;
    k.page_tokens = sizes[random() % 4];
    k.heads = static_cast<std::uint32_t>(pick(random, 1, 3));
    k.head_bytes = sizes[random() % 4];
    k.heads_first = random() % 2;
    k.layers.clear();
    for (std::uint32_t layer = 0; layer < 5; ++layer)
      if (random() % 2) k.layers.push_back(layer);
    k.pages = pick(random, 45, 60);
    a.push_back(k);
    k.pages = pick(random, 45, 60);
    b.push_back(k);
  }
  r.source = testing::small_layout(a);
  r.sink = testing::small_layout(b);
  for (auto& buffer : r.sink.buffers) buffer.region_offset = pick(random, 0, 3) * 8;
  r.tokens = pick(random, 0, 40);
  for (std::size_t c = 0; c < a.size(); ++c) {
    std::uint64_t page = a[c].page_tokens, full = (r.tokens + page - 1) / page;
    auto first = random() % 3 == 0 ? pick(random, 0, r.tokens / page) * page : 0;
    auto prefix = pick(random, 0, r.tokens / page) * page;
    if (random() % 8 == 0) prefix = r.tokens;
    r.source_list.push_back(draw_pages(random, a[c].pages, full));
    r.sink_list.push_back(draw_pages(random, b[c].pages, full - first / page));
    component_id id{static_cast<std::uint16_t>(c)};
    r.source_pages.push_back({id, 0, 0, as_runs(r.source_list[c])});
    r.sink_pages.push_back({id, first, random() % 2 ? prefix : 0, as_runs(r.sink_list[c])});
  }
  return r;
}

// Cuts tokens on borders that suit every component, and each piece's layers too; in random order.
std::vector<layout::range> cut(rng& random, const room& r) {
  std::vector<layout::range> out;
  std::uint64_t border = 8;
  for (std::uint64_t at = 0; at < r.tokens || out.empty();) {
    auto end = std::min(r.tokens, at + border * pick(random, 1, 3));
    auto layer = static_cast<std::uint32_t>(pick(random, 0, 6));
    out.push_back({at, end, 0, layer});
    out.push_back({at, end, layer, UINT32_MAX});
    at = end;
  }
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

using byte_address = std::pair<std::uint32_t, std::uint64_t>;  // region, offset

struct byte_map {
  std::map<byte_address, byte_address> from;
  std::map<byte_address, int> writes;
};

byte_map copied(const std::vector<transport::block>& blocks, byte_map map) {
  for (const auto& b : blocks)
    for (std::uint64_t i = 0; i < b.bytes; ++i) {
      byte_address to{b.remote.value, b.remote_offset + i};
      map.from[to] = {b.local.value, b.local_offset + i};
      ++map.writes[to];
    }
  return map;
}

// Every byte of every head of every token that the sink is owed came from the same place of the source's
// page, once. Returns how many bytes were looked at.
std::uint64_t check_owned(const room& r, const byte_map& map, std::uint64_t& wrong) {
  std::uint64_t owned = 0;
  for (std::size_t i = 0; i < r.sink.buffers.size(); ++i) {
    const auto &a = r.source.buffers[i], &b = r.sink.buffers[i];
    if (b.kind == buffer_kind::row) continue;
    const auto& to = r.sink_pages[b.component.value];
    auto token = std::max(to.first_token, to.prefix_tokens);
    for (; token < r.tokens; ++token) {
      std::uint64_t from_page = r.source_list[b.component.value][token / b.page_tokens];
      std::uint64_t to_page = r.sink_list[b.component.value][(token - to.first_token) / b.page_tokens];
      for (std::uint64_t head = 0; head < b.head_count; ++head) {
        auto head_bytes = b.item_bytes / b.page_tokens / b.head_count;
        auto inside = token % b.page_tokens * b.token_stride_bytes + head * b.head_stride_bytes;
        for (std::uint64_t byte = 0; byte < head_bytes; ++byte, ++owned) {
          byte_address at{b.region.value, b.region_offset + to_page * b.item_bytes + inside + byte};
          byte_address expected{a.region.value, a.region_offset + from_page * a.item_bytes + inside + byte};
          auto from = map.from.find(at);
          auto writes = map.writes.find(at);
          wrong += from == map.from.end() || from->second != expected || writes->second != 1;
        }
      }
    }
  }
  return owned;
}

// Bytes beyond: only of last pages whose tokens are not contiguous, and none twice.
std::uint64_t padding_allowed(const room& r) {
  std::uint64_t bytes = 0;
  for (const auto& b : r.sink.buffers) {
    if (b.kind == buffer_kind::row || b.head_count == 1) continue;
    if (b.token_stride_bytes * b.page_tokens == b.item_bytes) continue;
    const auto& to = r.sink_pages[b.component.value];
    auto rest = r.tokens % b.page_tokens;
    if (rest != 0 && std::max(to.first_token, to.prefix_tokens) < r.tokens)
      bytes += (b.page_tokens - rest) * (b.item_bytes / b.page_tokens);
  }
  return bytes;
}

}  // namespace

TEST_CASE("chunks of any cutting write each owned byte once and add up to the sink's own plan") {
  constexpr std::uint64_t seed = 20240917, rooms = 400;
  rng random(seed);
  std::uint64_t bytes = 0, chunks = 0;
  for (std::uint64_t n = 0; n < rooms; ++n) {
    INFO("seed ", seed, " room ", n);
    auto r = draw_room(random);
    REQUIRE(layout::check_pages(r.source, r.source_pages, r.tokens) == error{});
    REQUIRE(layout::check_pages(r.sink, r.sink_pages, r.tokens) == error{});
    auto own = layout::plan_totals(r.source, r.sink, r.sink_pages, r.tokens);
    REQUIRE(own);
    layout::totals sum;
    byte_map map;
    for (auto range : cut(random, r)) {
      auto chunk = layout::plan_chunk(r.source, r.sink, r.source_pages, r.sink_pages, r.tokens, range);
      REQUIRE(chunk);
      layout::add(sum, chunk->sum);
      map = copied(chunk->blocks, std::move(map));
      ++chunks;
    }
    CHECK(sum == *own);
    std::uint64_t wrong = 0;
    auto owned = check_owned(r, map, wrong);
    CHECK(wrong == 0);
    CHECK(map.writes.size() == owned + padding_allowed(r));
    CHECK(own->bytes == map.writes.size());
    CHECK(std::all_of(map.writes.begin(), map.writes.end(), [](const auto& w) { return w.second == 1; }));
    bytes += owned;
  }
  MESSAGE("seed ", seed, ": ", rooms, " rooms, ", chunks, " chunks, ", bytes, " owned bytes");
  CHECK(bytes > 100'000);
}

}  // namespace handoff
