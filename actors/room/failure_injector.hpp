// Failures on purpose, seeded: whether this occasion fails, and what its error says. One per place that
// injects; the kinds have sequences of their own, so that one does not shift another. Pure.
#pragma once

#include "actors/room/rank_calls.hpp"
#include "config/testing.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace handoff {

class failure_injector {
 public:
  failure_injector() = default;  ///< never
  /// `stream` tells the places of one process apart, and the ranks of one engine.
  failure_injector(const failure_probabilities& probabilities, std::uint64_t seed, std::string_view stream);

  /// The error (errc::injected) when this occasion is to fail; empty otherwise. `what` names the room or the
  /// transfer.
  error draw(failure_kind kind, std::string_view what);
  std::uint64_t count(failure_kind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  /// As "injected_poll", ... into a status; only where something can be injected.
  void count_into(status_part& part) const;

 private:
  failure_probabilities probabilities_{};
  std::array<std::uint64_t, failure_kind_count> states_{}, counts_{};
};

/// kind poll: takes the room's next verdict out of `effects`, unless it is its last one (what the other side
/// was told stands), and returns the error with which the room is to fail instead.
error draw_poll(failure_injector& failures, room_key key, room_effects& effects);

}  // namespace handoff
