// From the rank's actors to the engine's thread: changed verdicts and `released`. One producer (an actor is
// one at a time) and one consumer per queue; taking is wait-free, without system call or allocation. The only
// atomics of actors/ live here.
#pragma once

#include "actors/room/room_event.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace handoff {

class verdict_queue {
 public:
  /// Memory for `capacity` events is reserved but not touched before it is used.
  explicit verdict_queue(std::size_t capacity);

  /// Producer. False when full.
  bool push(const queued_event& event);
  /// Consumer. False when empty.
  bool pop(queued_event& event);
  bool empty() const;

 private:
  struct release {
    void operator()(queued_event* memory) const { ::operator delete(memory); }
  };
  std::size_t capacity_;
  std::unique_ptr<queued_event[], release> ring_;
  alignas(64) std::atomic<std::uint64_t> head_{0};  ///< next to pop
  alignas(64) std::atomic<std::uint64_t> tail_{0};  ///< next to push
};

/// Both queues of a runtime and the descriptor that its engine may sleep on.
class event_channel final : public event_port {
 public:
  explicit event_channel(std::size_t capacity);
  ~event_channel() override;
  event_channel(const event_channel&) = delete;
  event_channel& operator=(const event_channel&) = delete;

  /// Producer of that side. What does not fit waits in a backlog of the producer; `backlogged` says so.
  void push(room_side side, const queued_event& event) override;
  void flush(room_side side) override;
  bool backlogged(room_side side) const override { return !backlog(side).empty(); }

  /// Consumer.
  bool pop(queued_event& event);
  bool arm();
  int wait_fd() const { return descriptor_; }

 private:
  verdict_queue& queue(room_side side) { return side == room_side::source ? source_ : sink_; }
  std::deque<queued_event>& backlog(room_side side) { return backlog_[side == room_side::source ? 0 : 1]; }
  const std::deque<queued_event>& backlog(room_side side) const {
    return backlog_[side == room_side::source ? 0 : 1];
  }
  void wake();

  verdict_queue source_, sink_;
  std::deque<queued_event> backlog_[2];
  std::atomic<bool> armed_{false};
  int descriptor_;
  bool sink_next_ = false;
};

}  // namespace handoff
