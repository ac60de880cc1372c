#include "config/problems.hpp"

#include "config/defaults.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace handoff {
namespace {

/// Insertions, deletions and replacements that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

void problems::add(errc code, std::string pointer, std::string text) {
  list_.push_back({code, std::move(pointer), std::move(text)});
}

bool problems::has(std::string_view pointer) const {
  return std::any_of(list_.begin(), list_.end(), [&](const problem& p) { return p.pointer == pointer; });
}

expected<void> problems::result(const std::string& origin) const {
  if (list_.empty()) return {};
  std::string detail;
  auto shown = std::min(list_.size(), defaults::errors_reported);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& p = list_[i];
    detail +=
        fmt::format("{}{}: {}{}{}", i ? "\n" : "", origin, p.pointer, p.pointer.empty() ? "" : ": ", p.text);
  }
  if (shown < list_.size()) detail += fmt::format("\n{}: and {} more errors", origin, list_.size() - shown);
  return fail(list_.front().code, std::move(detail));
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t word_bytes_max = 64;  // keys are shorter; bounds the work on hostile files
  std::string_view best;
  auto best_distance = std::min<std::size_t>(word.size() / 3, 3) + 1;
  if (word.size() > word_bytes_max) return best;
  for (auto candidate : candidates) {
    auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace handoff
