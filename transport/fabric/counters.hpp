// What the engine threads count and the caller reads (transport::status). Relaxed: each number is right, the
// set is not a snapshot.
#pragma once

#include "transport/transport.hpp"

#include <atomic>

namespace handoff::transport::fabric {

class counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  void sub(std::uint64_t n = 1) { value_.fetch_sub(n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct counters {
  counter registrations, peers;
  counter transfers_active, writes_in_flight, frames_queued;
  counter transfers_done, transfers_failed, bytes_written, writes_posted, writes_retried;
  counter frames_sent, frames_received, frames_dropped;

  /// `regions` is the caller's own.
  status read() const {
    status s;
    s.registrations = registrations.get();
    s.peers = peers.get();
    s.transfers_active = transfers_active.get();
    s.writes_in_flight = writes_in_flight.get();
    s.frames_queued = frames_queued.get();
    s.transfers_done = transfers_done.get();
    s.transfers_failed = transfers_failed.get();
    s.bytes_written = bytes_written.get();
    s.writes_posted = writes_posted.get();
    s.writes_retried = writes_retried.get();
    s.frames_sent = frames_sent.get();
    s.frames_received = frames_received.get();
    s.frames_dropped = frames_dropped.get();
    return s;
  }
};

/// What the caller's thread may look at of a peer while an engine thread owns it.
struct peer_state {
  std::atomic<bool> ready{false};   ///< submit and send_frame are accepted
  std::atomic<bool> closed{false};  ///< peer_closed is on its way; the id is free
  std::atomic<std::uint32_t> ordinary_queued{0}, urgent_queued{0};
};

}  // namespace handoff::transport::fabric
