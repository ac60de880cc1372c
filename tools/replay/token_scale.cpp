#include "tools/replay/token_scale.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

namespace handoff::replay {
namespace {

constexpr unsigned shift_max = 20;
constexpr std::uint64_t pool_bytes_max = 4ull << 30;

}  // namespace

std::uint64_t token_scale::apply(std::uint64_t tokens) const {
  return std::max<std::uint64_t>(1, tokens >> shift);
}

std::string to_string(token_scale scale) {
  return scale.shift == 0 ? "1" : fmt::format("1/{}", 1ull << scale.shift);
}

expected<token_scale> parse_token_scale(std::string_view text) {
  if (text == "1") return token_scale{};
  std::uint64_t divisor = 0;
  if (text.substr(0, 2) == "1/") {
    const auto* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + 2, end, divisor);
    if (problem != std::errc{} || stop != end) divisor = 0;
  }
  if (!std::has_single_bit(divisor) || divisor > 1ull << shift_max)
    return fail(errc::invalid_argument,
                fmt::format("token scale '{}': expected auto, 1, or 1/N with N a power of two up to {}", text,
                            1ull << shift_max));
  return token_scale{static_cast<unsigned>(std::countr_zero(divisor))};
}

machine_limits limits_of_machine(std::uint64_t available_bytes) {
  machine_limits limits;
  limits.pool_bytes = std::min(available_bytes / 4, pool_bytes_max);
  return limits;
}

expected<std::uint64_t> available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kibibytes = 0;
  while (in >> key >> kibibytes && std::getline(in, unit))
    if (key == "MemAvailable:") return kibibytes * 1024;
  return fail(errc::io, "/proc/meminfo does not tell MemAvailable; give --token-scale 1/N instead of auto");
}

footprint measure(std::span<const request> requests, token_scale scale, std::uint64_t bytes_per_token,
                  std::uint32_t page_tokens, std::uint32_t concurrency) {
  footprint needs;
  for (const auto& r : requests) {
    const auto tokens = scale.apply(r.input_tokens);
    needs.tokens += tokens;
    needs.largest_tokens = std::max(needs.largest_tokens, tokens);
  }
  needs.bytes = needs.tokens * bytes_per_token;
  const auto largest_pages = (needs.largest_tokens + page_tokens - 1) / page_tokens;
  const auto active = largest_pages * concurrency;
  needs.pool_pages = active + std::max<std::uint64_t>(1, active / 4);
  needs.pool_bytes = needs.pool_pages * page_tokens * bytes_per_token;
  return needs;
}

expected<scale_choice> choose_token_scale(std::span<const request> requests, std::uint64_t bytes_per_token,
                                          std::uint32_t page_tokens, std::uint32_t concurrency,
                                          const machine_limits& limits) {
  const auto budget = limits.bytes_per_request_mean * requests.size();
  std::string_view decided = "everything fits at full size";
  for (unsigned shift = 0; shift <= shift_max; ++shift) {
    const token_scale scale{shift};
    const auto needs = measure(requests, scale, bytes_per_token, page_tokens, concurrency);
    const bool pool_fits = needs.pool_bytes <= limits.pool_bytes, time_fits = needs.bytes <= budget;
    if (pool_fits && time_fits)
      return scale_choice{
          scale, needs,
          fmt::format("token scale {} ({}): {} tokens, {} to move; pool {} pages, {} of {} "
                      "on either side",
                      to_string(scale), decided, needs.tokens, format_bytes(needs.bytes), needs.pool_pages,
                      format_bytes(needs.pool_bytes), format_bytes(limits.pool_bytes))};
    decided =
        pool_fits ? "the next larger one would take too long" : "the next larger one does not fit in memory";
  }
  const auto least = measure(requests, {shift_max}, bytes_per_token, page_tokens, concurrency);
  return fail(
      errc::limit_exceeded,
      fmt::format("even one token per request does not fit: {} requests at once need a pool of {}, {} "
                  "may be used; lower --concurrency",
                  concurrency, format_bytes(least.pool_bytes), format_bytes(limits.pool_bytes)));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace handoff::replay
