// What a simulated world can be made to suffer. Each kind has a name for `--faults` and is counted.
#pragma once

#include "messages/error.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handoff::sim {

enum class fault : std::uint8_t {
  // the wire, by chance
  frame_loss,         ///< a frame never arrives
  frame_duplication,  ///< a frame arrives twice, the copy late
  frame_reordering,   ///< a frame is overtaken by later ones, and delivered all the same
  delay,              ///< a frame, write or completion takes milliseconds
  post_refused,       ///< the provider has no room for a write and is asked again
  post_failed,        ///< a write is not posted
  completion_failed,  ///< a write completes in error, landed or not
  completion_lost,    ///< a write lands and never completes
  silent_ends,        ///< endpoints and processes end without a word: only silence tells
  // the network
  partition,          ///< two processes do not reach each other, fabric and control
  one_way_partition,  ///< the same in one direction
  control_partition,  ///< control connections alone
  control_break,      ///< one control connection is reset
  // processes
  freeze,           ///< a process stops for up to seconds and goes on
  stall,            ///< an engine does not take its events
  crash_prefill,    ///< it dies, and comes back as another incarnation
  crash_decode,     ///< the same
  crash_bootstrap,  ///< the same
  clock_jump,       ///< a clock leaps forward, by up to seconds
  clock_skew,       ///< clocks run apart, by up to 5 %
  small_limits,     ///< windows, slots, rooms, events: all scarce
  // engines
  abort,         ///< an engine gives a room up, at any moment
  late_call,     ///< a call comes seconds late
  missing_call,  ///< a call never comes
  wrong_call,    ///< a call that does not fit: pages of another room, a chunk twice, too many tokens
};
inline constexpr std::size_t fault_count = static_cast<std::size_t>(fault::wrong_call) + 1;

std::string_view to_string(fault kind);

using fault_set = std::bitset<fault_count>;

inline bool has(const fault_set& set, fault kind) {
  return set[static_cast<std::size_t>(kind)];
}

/// "all", "none", or names with commas between; "all,-freeze" is all but one. invalid_argument names the
/// word.
expected<fault_set> parse_faults(const std::string& list);
/// In the words that `parse_faults` takes.
std::string to_string(const fault_set& set);

}  // namespace handoff::sim
