// Watches a thread that may hang inside its provider because a stopped or killed process holds a lock in
// shared memory (shm_lock.hpp), and frees it. Nothing else can: the thread itself is inside libfabric.
//
// A hang is processor time that passes within one step; a step takes milliseconds at most, and a thread that
// is descheduled or stopped uses none.
#pragma once

#include "transport/fabric/endpoint.hpp"

#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <thread>

namespace handoff::transport::fabric {

class watchdog {
 public:
  watchdog() = default;
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

  /// Starts watching the calling thread.
  void watch_this_thread();

  /// Around every step of the watched thread.
  class step {
   public:
    step(watchdog& w, endpoint& inside);
    ~step();

   private:
    watchdog& watchdog_;
  };

 private:
  void run();
  void look();
  std::int64_t processor_ns() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  clockid_t clock_{};
  endpoint* inside_ = nullptr;  ///< whose step is running
  std::uint64_t steps_ = 0;     ///< begun so far
  std::uint64_t seen_steps_ = 0;
  std::int64_t seen_ns_ = 0;
  std::thread thread_;
};

}  // namespace handoff::transport::fabric
