#include "actors/runtime/verdict_queue.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include <sys/eventfd.h>
#include <unistd.h>

namespace handoff {

static_assert(std::is_trivially_copyable_v<queued_event>);

verdict_queue::verdict_queue(std::size_t capacity)
    : capacity_(capacity),
      ring_(static_cast<queued_event*>(::operator new(capacity * sizeof(queued_event)))) {}

bool verdict_queue::push(const queued_event& event) {
  auto tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) == capacity_) return false;
  new (ring_.get() + tail % capacity_) queued_event(event);
  tail_.store(tail + 1, std::memory_order_seq_cst);
  return true;
}

bool verdict_queue::pop(queued_event& event) {
  auto head = head_.load(std::memory_order_relaxed);
  if (head == tail_.load(std::memory_order_acquire)) return false;
  event = ring_[head % capacity_];
  head_.store(head + 1, std::memory_order_release);
  return true;
}

bool verdict_queue::empty() const {
  return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
}

event_channel::event_channel(std::size_t capacity)
    : source_(capacity), sink_(capacity), descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::runtime_error(std::string("eventfd: ") + std::strerror(errno));
}

event_channel::~event_channel() {
  ::close(descriptor_);
}

void event_channel::push(room_side side, const queued_event& event) {
  flush(side);
  if (!backlog(side).empty() || !queue(side).push(event)) backlog(side).push_back(event);
  wake();
}

void event_channel::flush(room_side side) {
  auto& waiting = backlog(side);
  while (!waiting.empty() && queue(side).push(waiting.front())) waiting.pop_front();
}

bool event_channel::pop(queued_event& event) {
  // Alternating keeps one busy side from starving the other.
  sink_next_ = !sink_next_;
  auto& first = sink_next_ ? source_ : sink_;
  auto& second = sink_next_ ? sink_ : source_;
  return first.pop(event) || second.pop(event);
}

bool event_channel::arm() {
  std::uint64_t drained;
  while (::read(descriptor_, &drained, sizeof drained) > 0) {
  }
  armed_.store(true, std::memory_order_seq_cst);
  if (source_.empty() && sink_.empty()) return true;
  armed_.store(false, std::memory_order_seq_cst);
  return false;
}

void event_channel::wake() {
  if (!armed_.exchange(false, std::memory_order_seq_cst)) return;
  std::uint64_t one = 1;
  // The counter cannot overflow: one write per arming. An interrupted write is tried again.
  while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

}  // namespace handoff
