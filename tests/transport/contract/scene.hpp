// What the cases of the suite are told with: endpoints that connect, patterns with canaries around them,
// bounded waits.
#pragma once

#include "tests/transport/contract/rig.hpp"

#include <doctest/doctest.h>

namespace handoff::transport::contract {

using namespace std::chrono_literals;

/// Longest wait for anything that must happen; virtual time on sim.
inline constexpr duration patience = 20s;
inline constexpr std::byte canary{0xc5};

/// A byte of pattern `seed` at `offset`; never the canary.
std::byte pattern(std::uint64_t seed, std::uint64_t offset);
void fill(std::span<std::byte> memory, std::uint64_t seed);
/// Offset of the first byte that is not the pattern's; memory.size() if all are.
std::size_t first_difference(std::span<const std::byte> memory, std::uint64_t seed);
bool all_are(std::span<const std::byte> memory, std::byte value);

/// One case on one rig. Transfer ids count from 1.
class scene {
 public:
  explicit scene(const rig_options& options = {});

  rig& on() { return *rig_; }
  transport& at(std::size_t i) { return rig_->at(i); }
  recorder& events(std::size_t i) { return rig_->events(i); }
  std::span<std::byte> memory(std::size_t i, std::size_t region = 0) { return rig_->memory(i, region); }
  status stat(std::size_t i) { return rig_->at(i).current_status(); }

  bool wait(const std::function<bool()>& predicate, duration limit = patience) {
    return rig_->wait_for(predicate, limit);
  }
  /// Lets things happen of which none is expected to be seen.
  void pass(duration d) {
    rig_->wait_for([] { return false; }, d);
  }

  /// Opens at `i` the endpoint for `j`.
  endpoint_record open(std::size_t i, std::size_t j, std::uint32_t session = 1);
  /// Opens and connects both ways and waits until both are ready.
  void connect(std::size_t i, std::size_t j, std::uint32_t session = 1);
  /// Closes both ways and waits for both answers.
  void disconnect(std::size_t i, std::size_t j);

  transfer make(std::size_t to, std::vector<block> blocks, duration timeout = patience);
  transfer_id submit(std::size_t from, transfer t);
  /// The transfer's one event.
  transfer_done done(std::size_t at, transfer_id id, duration limit = patience);
  std::size_t done_count(std::size_t at, transfer_id id);
  /// Submits, waits, and checks that all bytes were delivered.
  transfer_done deliver(std::size_t from, std::size_t to, std::vector<block> blocks);

  void send(std::size_t from, std::size_t to, std::vector<std::byte> payload, bool urgent = false);
  std::vector<frame_received> frames(std::size_t at, std::size_t from);

 private:
  std::unique_ptr<rig> rig_;
  std::uint64_t next_transfer_ = 1;
};

/// Events of one kind at endpoint `at` that are about peer `peer`.
template <class E>
std::vector<E> about(scene& s, std::size_t at, std::size_t peer) {
  std::vector<E> found = s.events(at).all<E>();
  std::erase_if(found, [&](const E& e) { return e.peer.value != peer; });
  return found;
}

template <class E>
std::size_t count(scene& s, std::size_t at, std::size_t peer) {
  return s.events(at).count_if<E>([&](const E& e) { return e.peer.value == peer; });
}

/// Is this case for the provider at hand? If not it is listed by name at the end.
bool offered(bool capability, const char* name);

/// One block from (0, local_offset) to (0, remote_offset).
block copy(std::uint64_t local_offset, std::uint64_t remote_offset, std::uint64_t bytes);

}  // namespace handoff::transport::contract

#define CONTRACT_NEEDS(capability)                                                                         \
  do {                                                                                                     \
    using handoff::transport::contract::provider_under_test;                                               \
    if (!handoff::transport::contract::offered(provider_under_test().can.capability, #capability)) return; \
  } while (false)
