#include "tests/transport/contract/rig.hpp"

#include <chrono>
#include <system_error>
#include <thread>

#include <sys/mman.h>

namespace handoff::transport::contract {

mapped_memory::mapped_memory(std::uint64_t bytes) : bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  base_ = static_cast<std::byte*>(p);
}

mapped_memory::~mapped_memory() {
  munmap(base_, bytes_);
}

void recorder::on_events(std::span<event> events) {
  std::lock_guard lock(mutex_);
  for (event& e : events) {
    if (watcher_) watcher_(e);
    events_.push_back(std::move(e));
  }
}

std::vector<event> recorder::everything() const {
  std::lock_guard lock(mutex_);
  return events_;
}

std::size_t recorder::count() const {
  std::lock_guard lock(mutex_);
  return events_.size();
}

bool poll_until(const std::function<bool()>& predicate, duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace handoff::transport::contract
