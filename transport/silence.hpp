// Liveness of one peer as seen from here: when a heartbeat is due, when the peer counts as silent, and when
// it is heard again. Pure; times come from the caller.
#pragma once

#include "transport/transport.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace handoff::transport {

class silence_watch {
 public:
  silence_watch(duration silence_after, time_point now) : after_(silence_after), last_heard_(now) {}

  /// A frame came or a write of ours was delivered. True: it was silent until now (`peer_heard`).
  bool heard(time_point now) {
    last_heard_ = std::max(last_heard_, now);
    return std::exchange(silent_, false);
  }

  /// How long it has been silent, once per silence (`peer_silent`).
  std::optional<duration> check(time_point now) {
    if (silent_ || now < due()) return std::nullopt;
    silent_ = true;
    return now - last_heard_;
  }

  bool silent() const { return silent_; }
  /// When `check` is worth a call; far away while silent.
  time_point due() const { return silent_ ? time_point::max() : last_heard_ + after_; }

 private:
  duration after_;
  time_point last_heard_;
  bool silent_ = false;
};

/// A heartbeat is due when nothing was sent for an interval.
class heartbeat_timer {
 public:
  heartbeat_timer(duration interval, time_point now) : interval_(interval), due_(now + interval) {}

  void sent(time_point now) { due_ = now + interval_; }
  time_point due() const { return due_; }

 private:
  duration interval_;
  time_point due_;
};

}  // namespace handoff::transport
