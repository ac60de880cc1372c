#include "actors/prefill/sent_ranges.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace handoff {
namespace {

bool names(const layout::range& what, std::uint32_t layer) {
  return what.first_layer <= layer && layer < what.last_layer;
}

}  // namespace

sent_ranges::sent_ranges(const layout_descriptor& layout) {
  for (const auto& b : layout.buffers) {
    if (layout.components[b.component.value].kind != component_kind::kv) continue;
    auto& components = layers_[b.layer].components;
    if (std::find(components.begin(), components.end(), b.component) == components.end())
      components.push_back(b.component);
  }
}

bool sent_ranges::overlaps(const layout::range& what) const {
  for (const auto& [number, l] : layers_) {
    if (!names(what, number)) continue;
    for (auto [first, last] : l.sent)
      if (first < what.last_token && what.first_token < last) return true;
  }
  return false;
}

void sent_ranges::add(const layout::range& what) {
  if (what.first_token == what.last_token) return;
  for (auto& [number, l] : layers_) {
    if (!names(what, number)) continue;
    auto at = std::lower_bound(l.sent.begin(), l.sent.end(), interval{what.first_token, what.last_token});
    at = l.sent.insert(at, {what.first_token, what.last_token});
    if (at + 1 != l.sent.end() && at->second == (at + 1)->first) {
      at->second = (at + 1)->second;
      l.sent.erase(at + 1);
    }
    if (at != l.sent.begin() && (at - 1)->second == at->first) {
      (at - 1)->second = at->second;
      l.sent.erase(at);
    }
  }
}

error sent_ranges::missing(component_id component, std::uint64_t from, std::uint64_t to,
                           const layout::range& more) const {
  for (const auto& [number, l] : layers_) {
    if (std::find(l.components.begin(), l.components.end(), component) == l.components.end()) continue;
    auto parts = l.sent;
    if (names(more, number)) {
      parts.emplace_back(more.first_token, more.last_token);
      std::sort(parts.begin(), parts.end());
    }
    auto reached = from;
    for (auto [first, last] : parts)
      if (first <= reached) reached = std::max(reached, last);
    if (reached < to)
      return {errc::coverage_gap,
              fmt::format("token {} of layer {} (component {}) was not sent before or with the last chunk",
                          reached, number, component.value),
              {}};
  }
  return {};
}

std::uint64_t sent_ranges::reached(component_id component, std::uint64_t from) const {
  std::optional<std::uint64_t> least;
  for (const auto& [number, l] : layers_) {
    if (std::find(l.components.begin(), l.components.end(), component) == l.components.end()) continue;
    auto reached = from;
    for (auto [first, last] : l.sent)
      if (first <= reached) reached = std::max(reached, last);
    least = std::min(least.value_or(reached), reached);
  }
  return least.value_or(from);
}

}  // namespace handoff
