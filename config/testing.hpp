// Failure on purpose: kinds, probabilities, and where a process stops itself. Only with testing.enabled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handoff {

enum class failure_kind : std::uint8_t {
  poll,        ///< a room fails just before a verdict of it is published
  post,        ///< the transport refuses a transfer
  completion,  ///< a transfer that was delivered is reported as failed
  frame,       ///< a room's frame is not sent
  commit,      ///< a metadata row that arrived cannot be read
};
inline constexpr std::array<std::string_view, 5> failure_kind_names{"poll", "post", "completion", "frame",
                                                                    "commit"};
inline constexpr std::size_t failure_kind_count = failure_kind_names.size();
constexpr std::string_view to_string(failure_kind kind) {
  return failure_kind_names[static_cast<std::size_t>(kind)];
}

/// By failure_kind, 0..1.
using failure_probabilities = std::array<double, failure_kind_count>;

struct testing_section {
  bool enabled = false;
  failure_probabilities failure_probability{};
  std::uint64_t seed = 1;
  std::string breakpoint;                 ///< "sender.sending", "receiver.published:17"; empty: none
  std::string breakpoint_action{"stop"};  ///< "stop", "kill" or "report"
};

}  // namespace handoff
