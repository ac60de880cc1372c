// Agrees what poll state a room is in: the minimum over the votes of all ranks of a group, in one sequence.
// Failed from one is failed for all, at once, with the first reason. Terminal verdicts stick. Pure; one per
// side of a runtime, because a room may have both its ends in one engine.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace handoff {

struct gate_vote {
  room_key key;
  std::uint32_t rank = 0;  ///< index inside the group
  kv_poll poll = kv_poll::bootstrapping;
  error reason;  ///< of a failure
  proven_by_component proven_tokens{};
};

struct gate_verdict {
  std::uint64_t sequence = 0;  ///< from 1, without gaps, over all rooms
  room_key key;
  kv_poll poll = kv_poll::bootstrapping;
  error reason;
  proven_by_component proven_tokens{};  ///< the least of the ranks'
};

class poll_gate {
 public:
  /// `ranks` of the group, at least 1; `rooms_max` open at once.
  poll_gate(std::uint32_t ranks, std::size_t rooms_max);

  /// A changed verdict, if this vote changed it. A group of one passes every change. Votes for less than
  /// the same rank voted before are late and change nothing, except `failed`. limit_exceeded: rooms_max;
  /// invalid_argument: no such rank.
  expected<std::optional<gate_verdict>> vote(const gate_vote& v);
  /// The room has ended here and its tombstone stands elsewhere.
  void forget(room_key key) { rooms_.erase(key); }

  std::size_t rooms() const { return rooms_.size(); }
  std::uint64_t sequence() const { return sequence_; }

 private:
  struct ballot {
    std::vector<kv_poll> polls;
    std::vector<proven_by_component> proven;
    kv_poll verdict = kv_poll::bootstrapping;
  };

  std::uint32_t ranks_;
  std::size_t rooms_max_;
  std::uint64_t sequence_ = 0;
  std::unordered_map<room_key, ballot> rooms_;
};

}  // namespace handoff
