#include "transport/fabric/watchdog.hpp"

#include <chrono>

#include <pthread.h>

namespace handoff::transport::fabric {

namespace {
constexpr auto look_interval = std::chrono::milliseconds(50);
constexpr std::int64_t hang_ns = 100'000'000;
}  // namespace

watchdog::~watchdog() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void watchdog::watch_this_thread() {
  if (pthread_getcpuclockid(pthread_self(), &clock_) != 0) return;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "fabric-watch");
}

watchdog::step::step(watchdog& w, endpoint& inside) : watchdog_(w) {
  std::lock_guard guard(watchdog_.mutex_);
  watchdog_.inside_ = &inside;
  ++watchdog_.steps_;
}

watchdog::step::~step() {
  std::lock_guard guard(watchdog_.mutex_);
  watchdog_.inside_ = nullptr;
}

void watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, look_interval);
    look();
  }
}

std::int64_t watchdog::processor_ns() const {
  timespec used{};
  clock_gettime(clock_, &used);
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

void watchdog::look() {
  if (inside_ == nullptr) return;
  const auto ns = processor_ns();
  if (steps_ != seen_steps_) {
    seen_steps_ = steps_;
    seen_ns_ = ns;
  } else if (ns - seen_ns_ > hang_ns) {
    inside_->break_locks();
    seen_ns_ = ns;
  }
}

}  // namespace handoff::transport::fabric
