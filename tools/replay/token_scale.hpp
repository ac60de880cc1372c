// How much smaller than its trace a replay is: a machine that holds and moves a trace's full size is rare.
// Pure; `available_memory` alone looks at the machine.
#pragma once

#include "messages/error.hpp"
#include "tools/replay/trace.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace handoff::replay {

/// Tokens are divided by 2^shift, at least one remains.
struct token_scale {
  unsigned shift = 0;
  std::uint64_t apply(std::uint64_t tokens) const;
  friend bool operator==(const token_scale&, const token_scale&) = default;
};
/// "1/32"
std::string to_string(token_scale scale);
/// "1" or "1/N" with N a power of two up to 2^20; invalid_argument says so.
expected<token_scale> parse_token_scale(std::string_view text);

/// What auto fits the replay into.
struct machine_limits {
  std::uint64_t pool_bytes = 0;                        ///< of either side
  std::uint64_t bytes_per_request_mean = 120'000'000;  ///< 500 requests a minute at 1 GB/s
};
/// A quarter of the available memory, 4 GiB at most: two pools and the page cache beside them.
machine_limits limits_of_machine(std::uint64_t available_bytes);
/// MemAvailable of /proc/meminfo.
expected<std::uint64_t> available_memory();

/// What one side must hold, and what the whole replay moves.
struct footprint {
  std::uint64_t tokens = 0, bytes = 0;  ///< of all requests
  std::uint64_t largest_tokens = 0;     ///< of one request
  std::uint64_t pool_pages = 0,
                pool_bytes = 0;  ///< the largest request, `concurrency` times, and a quarter more
};
footprint measure(std::span<const request> requests, token_scale scale, std::uint64_t bytes_per_token,
                  std::uint32_t page_tokens, std::uint32_t concurrency);

struct scale_choice {
  token_scale scale;
  footprint needs;
  std::string reason;  ///< for people: what was chosen, and which limit decided
};
/// The largest scale that keeps to both limits; limit_exceeded when not even one token per request does.
expected<scale_choice> choose_token_scale(std::span<const request> requests, std::uint64_t bytes_per_token,
                                          std::uint32_t page_tokens, std::uint32_t concurrency,
                                          const machine_limits& limits);

/// "1.5 GiB", "23.0 KiB"
std::string format_bytes(std::uint64_t bytes);

}  // namespace handoff::replay
