// What the contract suite runs on. An executable is: the suite (object library handoff_contract_suite), and
// one source that defines `provider_under_test` and `make_rig`. Endpoints are numbered from 0; at endpoint i
// the peer that is endpoint j has peer_id{j}. Each endpoint has the same list of regions.
#pragma once

#include "transport/transport.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace handoff::transport::contract {

/// Zeroed pages, reserved only when touched, and shared with forked children.
class mapped_memory {
 public:
  explicit mapped_memory(std::uint64_t bytes);
  mapped_memory(const mapped_memory&) = delete;
  mapped_memory& operator=(const mapped_memory&) = delete;
  ~mapped_memory();
  std::span<std::byte> span() const { return {base_, bytes_}; }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// Keeps every event of one endpoint, in order. Thread-safe.
class recorder : public event_sink {
 public:
  void on_events(std::span<event> events) override;

  /// All events of one kind so far.
  template <class E>
  std::vector<E> all() const {
    std::lock_guard lock(mutex_);
    std::vector<E> found;
    for (const event& e : events_)
      if (const auto* x = std::get_if<E>(&e)) found.push_back(*x);
    return found;
  }
  /// How many of them a predicate holds for; copies nothing.
  template <class E, class P>
  std::size_t count_if(P predicate) const {
    std::lock_guard lock(mutex_);
    std::size_t n = 0;
    for (const event& e : events_)
      if (const auto* x = std::get_if<E>(&e)) n += predicate(*x);
    return n;
  }
  std::vector<event> everything() const;
  /// Called for each event as it comes, on whatever thread brings it. Set before anything happens.
  void watch(std::function<void(const event&)> watcher) {
    std::lock_guard lock(mutex_);
    watcher_ = std::move(watcher);
  }
  /// Changes whenever something was recorded.
  std::size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::vector<event> events_;
  std::function<void(const event&)> watcher_;
};

struct rig_options {
  std::size_t endpoints = 2;
  /// Sizes of regions 0, 1, ... of every endpoint, registered in this order. Memory is zero at first.
  std::vector<std::uint64_t> region_bytes = {4 << 20};
  /// The last so many of them are registered with memory_region::shown = false.
  std::size_t hidden_regions = 0;
  /// host_id, bind_address and incarnation are the rig's to fill in.
  settings limits;
};

class rig {
 public:
  virtual ~rig() = default;  ///< closes every transport, ends every child

  virtual transport& at(std::size_t endpoint) = 0;
  virtual recorder& events(std::size_t endpoint) = 0;
  virtual std::span<std::byte> memory(std::size_t endpoint, std::size_t region = 0) = 0;

  /// Lets time pass until the predicate holds. False: `limit` passed without.
  virtual bool wait_for(const std::function<bool()>& predicate, duration limit) = 0;

  /// Stops an endpoint's process (its engine thread, where it has no process of its own); `thaw` lets it go
  /// on. Only with capabilities::freeze. No call is made to a frozen endpoint's transport.
  virtual void freeze(std::size_t endpoint) = 0;
  virtual void thaw(std::size_t endpoint) = 0;
  /// Ends an endpoint without any farewell. Only with capabilities::kill.
  virtual void kill(std::size_t endpoint) = 0;
};

struct capabilities {
  bool freeze = false;
  bool kill = false;
};

/// What the executable tests.
struct provider_info {
  std::string name;      ///< in reports: "sim", "tcp", "tcp processes"
  std::string provider;  ///< for open_peer: "sim", "tcp", "shm"
  capabilities can;
};

/// Defined by the rig's source.
const provider_info& provider_under_test();
std::unique_ptr<rig> make_rig(const rig_options& options);

/// For rigs in real time: checks the predicate at short intervals.
bool poll_until(const std::function<bool()>& predicate, duration limit);

}  // namespace handoff::transport::contract
