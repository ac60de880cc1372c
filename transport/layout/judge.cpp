// What can be said of layouts, page lists and ranges before anything is planned.
#include "transport/layout/plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::layout {
namespace {

error refuse(std::string what, std::string source, std::string sink) {
  return {
      errc::layout_refused,
      fmt::format("{}: the source has {}, the sink {}; only equal layouts are served", what, source, sink),
      {}};
}

// Finds the first difference; each value is named on both sides.
class judge {
 public:
  template <class T>
  judge& same(std::string_view what, const T& source, const T& sink) {
    if (!found_ && source != sink)
      found_ = refuse(where_ + std::string(what), fmt::format("{}", source), fmt::format("{}", sink));
    return *this;
  }
  judge& at(std::string where) {
    if (!found_) where_ = std::move(where);
    return *this;
  }
  bool differs() const { return bool(found_); }
  error verdict() { return std::move(found_); }

 private:
  std::string where_;
  error found_;
};

std::string text(const rank_topology& t) {
  return fmt::format("pp{} cp{} tp{}", t.pp, t.cp, t.tp);
}

// Data parallel ranks hold the same kind of pages; only the other axes cut a model.
std::string text(const rank_coord& r) {
  return fmt::format("pp{} cp{} tp{}", r.pp, r.cp, r.tp);
}

void compare_buffer(judge& j, const buffer_layout& a, const buffer_layout& b) {
  j.same("component", a.component.value, b.component.value)
      .same("layer", a.layer, b.layer)
      .same("kind", to_string(a.kind), to_string(b.kind))
      .same("memory", to_string(a.memory), to_string(b.memory))
      .same("first head", a.head_first, b.head_first)
      .same("heads", a.head_count, b.head_count)
      .same("tokens per page", a.page_tokens, b.page_tokens)
      .same("item bytes", a.item_bytes, b.item_bytes)
      .same("token stride", a.token_stride_bytes, b.token_stride_bytes)
      .same("head stride", a.head_stride_bytes, b.head_stride_bytes);
}

error check_component(const layout_descriptor& layout, const component_pages& pages,
                      std::uint64_t room_tokens, std::vector<bool>& seen) {
  const auto& component = layout.components[pages.component.value];
  auto bad = [&](errc code, std::string detail) {
    return error{
        code, fmt::format("component {} ({}): {}", pages.component.value, component.name, detail), {}};
  };
  auto page_tokens = component.page_tokens;
  if (page_tokens == 0) return bad(errc::layout_refused, "its pages hold no tokens");
  if (pages.first_token % page_tokens != 0 || pages.first_token > room_tokens)
    return bad(errc::invalid_argument,
               fmt::format("first token {} is not on a border of {}-token pages within {} tokens",
                           pages.first_token, page_tokens, room_tokens));
  auto prefix = pages.prefix_tokens;
  if (prefix > room_tokens || (prefix % page_tokens != 0 && prefix != room_tokens))
    return bad(errc::invalid_argument,
               fmt::format("prefix {} is neither on a border of {}-token pages nor all of {} tokens", prefix,
                           page_tokens, room_tokens));
  seen.assign(component.pages, false);
  std::uint64_t count = 0;
  for (auto run : pages.runs) {
    if (run.first.value > component.pages || run.count > component.pages - run.first.value)
      return bad(errc::transport_region,
                 fmt::format("pages [{}, {}+{}) lie outside of its {} pages", run.first.value,
                             run.first.value, run.count, component.pages));
    for (auto p = run.first.value; p < run.first.value + run.count; ++p) {
      if (seen[p]) return bad(errc::invalid_argument, fmt::format("page {} is listed twice", p));
      seen[p] = true;
    }
    count += run.count;
  }
  auto from = owed_from(pages, room_tokens);
  if (from < room_tokens && count < (room_tokens - pages.first_token - 1) / page_tokens + 1)
    return bad(errc::coverage_gap, fmt::format("{} pages of {} tokens from token {} on do not reach token {}",
                                               count, page_tokens, pages.first_token, room_tokens));
  return {};
}

}  // namespace

error judge_pair(const layout_descriptor& source, const layout_descriptor& sink) {
  judge j;
  j.same("layout version", source.version, sink.version)
      .same("topology", text(source.topology), text(sink.topology))
      .same("rank", text(source.rank), text(sink.rank))
      .same("components", source.components.size(), sink.components.size())
      .same("buffers", source.buffers.size(), sink.buffers.size())
      .same("state components", source.states.size(), sink.states.size());
  for (std::size_t i = 0; !j.differs() && i < source.components.size(); ++i) {
    const auto &a = source.components[i], &b = sink.components[i];
    j.at(fmt::format("component {} ", i))
        .same("kind", to_string(a.kind), to_string(b.kind))
        .same("name", a.name, b.name)
        .same("tokens per page", a.page_tokens, b.page_tokens);
    if (!j.differs() && a.kind == component_kind::state)
      return refuse(fmt::format("component {} ({})", i, a.name), "state", "state");
  }
  for (std::size_t i = 0; !j.differs() && i < source.buffers.size(); ++i)
    compare_buffer(j.at(fmt::format("buffer {} ", i)), source.buffers[i], sink.buffers[i]);
  return j.verdict();
}

std::uint64_t owed_from(const component_pages& sink, std::uint64_t room_tokens) {
  return std::min(room_tokens, std::max(sink.first_token, sink.prefix_tokens));
}

error check_range(const layout_descriptor& layout, range what, std::uint64_t room_tokens) {
  auto bad = [&](std::string detail) {
    return error{errc::invalid_argument,
                 fmt::format("chunk of tokens [{}, {}): {}", what.first_token, what.last_token, detail),
                 {}};
  };
  if (what.first_token > what.last_token || what.last_token > room_tokens)
    return bad(fmt::format("not a range of the room's {} tokens", room_tokens));
  if (what.first_layer > what.last_layer)
    return bad(fmt::format("[{}, {}) is not a range of layers", what.first_layer, what.last_layer));
  for (const auto& component : layout.components) {
    if (component.kind != component_kind::kv || component.page_tokens == 0) continue;
    auto off_border = [&](std::uint64_t token) {
      return token % component.page_tokens != 0 && token != room_tokens;
    };
    if (off_border(what.first_token) || off_border(what.last_token))
      return bad(fmt::format("its ends are not on borders of {}'s {}-token pages", component.name,
                             component.page_tokens));
  }
  return {};
}

error check_pages(const layout_descriptor& layout, const std::vector<component_pages>& pages,
                  std::uint64_t room_tokens) {
  std::vector<bool> listed(layout.components.size()), seen;
  for (const auto& part : pages) {
    auto c = part.component.value;
    if (c >= listed.size() || layout.components[c].kind != component_kind::kv)
      return {errc::invalid_argument, fmt::format("component {} does not exist or has no pages", c), {}};
    if (listed[c]) return {errc::invalid_argument, fmt::format("component {} is listed twice", c), {}};
    listed[c] = true;
    if (auto e = check_component(layout, part, room_tokens, seen)) return e;
  }
  for (std::size_t c = 0; room_tokens != 0 && c < listed.size(); ++c)
    if (layout.components[c].kind == component_kind::kv && !listed[c])
      return {errc::coverage_gap,
              fmt::format("component {} ({}) is not in the page list", c, layout.components[c].name),
              {}};
  return {};
}

}  // namespace handoff::layout
