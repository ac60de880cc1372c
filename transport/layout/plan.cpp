#include "transport/layout/plan.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

namespace handoff::layout {
namespace {

// a * b + c, or nothing when 64 bits do not hold it.
bool multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t& out) {
  return !__builtin_mul_overflow(a, b, &out) && !__builtin_add_overflow(out, c, &out);
}

// Tokens of one page in one buffer: what moves of it.
struct item {
  std::uint64_t first_token = 0;
  std::uint64_t bytes = 0;
  page_id source, sink;
};

// Walks a list of runs page by page.
class page_walk {
 public:
  explicit page_walk(const component_pages& pages) : pages_(&pages) {}
  /// Moves on by `count` pages; false when the list ends before there is one to read.
  bool skip(std::uint64_t count) {
    while (run_ < pages_->runs.size()) {
      auto left = pages_->runs[run_].count - inside_;
      if (count < left) {
        inside_ += static_cast<std::uint32_t>(count);
        return true;
      }
      count -= left;
      inside_ = 0;
      ++run_;
    }
    return false;
  }
  page_id page() const { return {pages_->runs[run_].first.value + inside_}; }

 private:
  const component_pages* pages_;
  std::size_t run_ = 0;
  std::uint32_t inside_ = 0;
};

std::uint64_t item_hash(const buffer_layout& buffer, std::size_t index, const item& x) {
  struct {
    std::uint64_t first_token, bytes;
    std::uint32_t page, buffer, layer;
    std::uint16_t component, kind;
  } key{x.first_token,
        x.bytes,
        x.sink.value,
        static_cast<std::uint32_t>(index),
        buffer.layer,
        buffer.component.value,
        static_cast<std::uint16_t>(buffer.kind)};
  static_assert(sizeof key == 32, "no padding: the digest is over every byte");
  return XXH3_64bits(&key, sizeof key);
}

// Contiguous tokens are those that no other head's tokens stand between.
std::uint64_t bytes_of(const buffer_layout& buffer, std::uint64_t tokens) {
  bool contiguous = buffer.token_stride_bytes != 0 &&
                    buffer.item_bytes / buffer.token_stride_bytes == buffer.page_tokens &&
                    buffer.item_bytes % buffer.token_stride_bytes == 0;
  return contiguous && tokens < buffer.page_tokens ? tokens * buffer.token_stride_bytes : buffer.item_bytes;
}

const component_pages* find(const std::vector<component_pages>& pages, std::size_t component) {
  auto found =
      std::find_if(pages.begin(), pages.end(), [&](const auto& p) { return p.component.value == component; });
  return found == pages.end() ? nullptr : &*found;
}

// One component's part of a plan. Without source pages only the totals come out.
class component_planner {
 public:
  component_planner(const layout_descriptor& source, const layout_descriptor& sink, std::size_t component,
                    std::uint64_t room_tokens)
      : source_(source), sink_(sink), component_(component), room_tokens_(room_tokens) {}

  error plan(const component_pages* from, const component_pages& to, range what, chunk_plan& out) {
    auto page_tokens = sink_.components[component_].page_tokens;
    auto first = std::max(what.first_token, owed_from(to, room_tokens_));
    auto last = std::min(what.last_token, room_tokens_);
    if (first >= last) return {};
    if (auto e = list_items(from, to, first, last, page_tokens)) return e;
    std::uint64_t bytes = 0;
    bool any = false;
    for (std::size_t i = 0; i < sink_.buffers.size(); ++i) {
      const auto& b = sink_.buffers[i];
      if (b.component.value != component_ || b.layer < what.first_layer || b.layer >= what.last_layer)
        continue;
      any = true;
      if (auto e = plan_buffer(i, from != nullptr, bytes, out)) return e;
    }
    if (any)
      add(out.sum, {bytes, 0, {{component_id{static_cast<std::uint16_t>(component_)}, first, last, bytes}}});
    return {};
  }

 private:
  error list_items(const component_pages* from, const component_pages& to, std::uint64_t first,
                   std::uint64_t last, std::uint64_t page_tokens) {
    if (from && from->first_token > first) return gap("source", first);
    page_walk sink_walk(to), source_walk(from ? *from : to);
    auto to_skip = (first - to.first_token) / page_tokens;
    auto from_skip = from ? (first - from->first_token) / page_tokens : to_skip;
    items_.clear();
    for (auto token = first; token < last;) {
      if (!sink_walk.skip(to_skip)) return gap("sink", token);
      if (!source_walk.skip(from_skip)) return gap("source", token);
      to_skip = from_skip = 1;
      auto end = std::min(last, (token / page_tokens + 1) * page_tokens);
      items_.push_back({token, end - token, source_walk.page(), sink_walk.page()});
      if (auto e = check_page("sink", sink_, sink_walk.page())) return e;
      if (auto e = from ? check_page("source", source_, source_walk.page()) : error{}) return e;
      token = end;
    }
    return {};
  }

  error plan_buffer(std::size_t index, bool blocks, std::uint64_t& bytes, chunk_plan& out) {
    const auto &a = source_.buffers[index], &b = sink_.buffers[index];
    bool joins = false;  // may the next item continue the last block?
    for (auto x : items_) {
      x.bytes = bytes_of(b, x.bytes);
      out.sum.digest += item_hash(b, index, x);
      if (__builtin_add_overflow(bytes, x.bytes, &bytes)) return overflow(index);
      if (!blocks) continue;
      std::uint64_t from, to;
      if (!multiply_add(x.source.value, a.item_bytes, a.region_offset, from) ||
          !multiply_add(x.sink.value, b.item_bytes, b.region_offset, to) || from + x.bytes < from ||
          to + x.bytes < to)
        return overflow(index);
      auto& all = out.blocks;
      if (joins && all.back().local_offset + all.back().bytes == from &&
          all.back().remote_offset + all.back().bytes == to)
        all.back().bytes += x.bytes;
      else
        all.push_back({a.region, from, b.region, to, x.bytes});
      joins = true;
    }
    return {};
  }

  error check_page(const char* side, const layout_descriptor& layout, page_id page) const {
    auto pages = layout.components[component_].pages;
    if (page.value < pages) return {};
    return {errc::transport_region,
            fmt::format("{} page {} lies outside of the {} pages of component {} ({})", side, page.value,
                        pages, component_, layout.components[component_].name),
            {}};
  }
  error gap(const char* side, std::uint64_t token) const {
    return {errc::coverage_gap,
            fmt::format("the {}'s pages of component {} ({}) do not hold token {}", side, component_,
                        sink_.components[component_].name, token),
            {}};
  }
  error overflow(std::size_t buffer) const {
    return {errc::invalid_argument, fmt::format("addresses of buffer {} do not fit 64 bits", buffer), {}};
  }

  const layout_descriptor &source_, &sink_;
  std::size_t component_;
  std::uint64_t room_tokens_;
  std::vector<item> items_;
};

// Both entry points: `source_pages` is null when only totals are asked for.
error plan(const layout_descriptor& source, const layout_descriptor& sink,
           const std::vector<component_pages>* source_pages, const std::vector<component_pages>& sink_pages,
           std::uint64_t room_tokens, range what, chunk_plan& out) {
  if (auto e = judge_pair(source, sink)) return e;
  if (auto e = check_range(sink, what, room_tokens)) return e;
  for (std::size_t c = 0; c < sink.components.size() && room_tokens != 0; ++c) {
    const auto& component = sink.components[c];
    if (component.kind != component_kind::kv) continue;
    if (component.page_tokens == 0)
      return {errc::layout_refused, fmt::format("pages of component {} hold no tokens", c), {}};
    const auto* to = find(sink_pages, c);
    const auto* from = source_pages ? find(*source_pages, c) : nullptr;
    if (!to || (source_pages && !from))
      return {errc::coverage_gap,
              fmt::format("component {} ({}) is not in the {}'s page list", c, component.name,
                          to ? "source" : "sink"),
              {}};
    if (auto e = component_planner(source, sink, c, room_tokens).plan(from, *to, what, out)) return e;
  }
  return {};
}

}  // namespace

void add(totals& sum, const totals& chunk) {
  sum.bytes += chunk.bytes;
  sum.digest += chunk.digest;
  for (const auto& c : chunk.coverage) {
    auto at = std::lower_bound(sum.coverage.begin(), sum.coverage.end(), c,
                               [](const auto& a, const auto& b) { return a.component < b.component; });
    if (at == sum.coverage.end() || at->component != c.component) {
      sum.coverage.insert(at, c);
      continue;
    }
    at->first_token = std::min(at->first_token, c.first_token);
    at->last_token = std::max(at->last_token, c.last_token);
    at->bytes += c.bytes;
  }
}

expected<chunk_plan> plan_chunk(const layout_descriptor& source, const layout_descriptor& sink,
                                const std::vector<component_pages>& source_pages,
                                const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens,
                                range what) {
  chunk_plan out;
  if (auto e = plan(source, sink, &source_pages, sink_pages, room_tokens, what, out))
    return unexpected(std::move(e));
  return out;
}

expected<totals> plan_totals(const layout_descriptor& source, const layout_descriptor& sink,
                             const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens) {
  chunk_plan out;
  if (auto e = plan(source, sink, nullptr, sink_pages, room_tokens, {0, room_tokens}, out))
    return unexpected(std::move(e));
  return std::move(out.sum);
}

}  // namespace handoff::layout
