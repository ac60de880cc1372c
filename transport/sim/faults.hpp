// What can go wrong on the simulated wire. Probabilities are per operation, from 0 to 1.
#pragma once

#include "transport/transport.hpp"

namespace handoff::transport {

/// One direction between two processes; may change at any time and holds for what is sent from then on.
struct link_faults {
  duration delay_min = std::chrono::microseconds(2);  ///< each frame, write and completion, evenly between
  duration delay_max = std::chrono::microseconds(20);
  double slow = 0;  ///< takes slow_delay more
  duration slow_delay = std::chrono::milliseconds(5);

  double frame_loss = 0;         ///< never arrives (its receive buffer comes back, as if it had been empty)
  double frame_duplication = 0;  ///< arrives twice
  double frame_reordering = 0;   ///< is overtaken by what is sent within reorder_delay
  duration reorder_delay = std::chrono::microseconds(500);
  /// Late and duplicate frames are delivered instead of dropped: for testing what runs above.
  bool raw_frames = false;

  double post_refused = 0;       ///< the provider has no room: tried again after retry_delay
  double post_failed = 0;        ///< the write is not posted: transport_post
  double completion_failed = 0;  ///< completes in error, and has landed every second time
  double completion_lost = 0;    ///< lands and never completes: the transfer ends undrained at its deadline
  duration retry_delay = std::chrono::microseconds(10);
};

/// How often each fault occurred in a world; a chaos test prints it.
struct fault_counts {
  std::uint64_t frames_lost = 0, frames_duplicated = 0, frames_reordered = 0, frames_to_nobody = 0;
  std::uint64_t slowed = 0;       ///< frames, writes and completions that took slow_delay more
  std::uint64_t held = 0;         ///< frames, writes and completions that waited for a cut link
  std::uint64_t frames_late = 0;  ///< dropped by the sequence check, or delivered where raw
  std::uint64_t posts_refused = 0, posts_failed = 0, completions_failed = 0, completions_lost = 0;
  std::uint64_t writes_to_nobody = 0;  ///< the endpoint was gone when the write came: fenced, closed, killed
  std::uint64_t writes_bad_key = 0;    ///< dropped by the target's key or bound check
};

}  // namespace handoff::transport
