// What a room's poll state is. The order carries meaning: rank groups combine states with MIN, so that a
// failure dominates and otherwise the slowest rank decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace handoff {

enum class kv_poll : std::uint8_t {
  failed = 0,             ///< terminal: the reason stands beside it
  bootstrapping = 1,      ///< the other side is not known yet
  waiting_for_input = 2,  ///< source: destinations are known, may send; sink: may allocate and publish
  transferring = 3,       ///< bytes are moving, or their proof is awaited
  success = 4,            ///< terminal: everything has arrived and was confirmed
};

inline constexpr kv_poll last_enumerator(kv_poll) {
  return kv_poll::success;
}

/// What a verdict says beside the poll state: how many tokens of each component were proven to have arrived
/// in every layer. Of components beyond the eighth nothing is told.
inline constexpr std::size_t proven_components = 8;
using proven_by_component = std::array<std::uint64_t, proven_components>;

constexpr kv_poll combine(kv_poll a, kv_poll b) {
  return std::min(a, b);
}
constexpr bool is_terminal(kv_poll p) {
  return p == kv_poll::failed || p == kv_poll::success;
}

std::string_view to_string(kv_poll poll);

}  // namespace handoff
