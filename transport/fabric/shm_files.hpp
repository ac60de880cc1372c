// The files that shm endpoints are in /dev/shm: their names, who owns them, what dead processes left behind.
//
//   handoff-<incarnation>-<instance>.lock                    held (flock) while the transport lives
//   handoff-<incarnation>-<instance>-<peer>-<session>-<n>    one endpoint, 16 MiB
//
// Names come from the incarnation, never from the pid, which containers share and the kernel reuses.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <array>
#include <csignal>
#include <cstdint>
#include <string>

namespace handoff::transport::fabric {

/// Same value = same boot of the same host and the same /dev/shm; see endpoint_record::host_id.
std::string local_host_id();

/// Names and owns the files of one transport.
class shm_files {
 public:
  shm_files() = default;
  shm_files(shm_files&& other) noexcept;
  shm_files& operator=(shm_files&& other) noexcept;
  ~shm_files();

  /// Takes the lock file, then removes what dead incarnations left.
  static expected<shm_files> make(incarnation_id incarnation);

  /// A name that no endpoint had before, without libfabric's prefix.
  std::string next_name(peer_id peer, session_id session);
  /// Is there room for one more endpoint? transport_provider with the numbers if not.
  static expected<void> check_space();
  /// Is this a name as `next_name` makes them? Peers send names, which become paths.
  static bool is_name(const std::string& name);
  /// What all names of one transport begin with. @pre is_name(name)
  static std::string owner_of(const std::string& name);
  /// Removes files whose lock is free. Returns how many.
  static int remove_stale();

 private:
  std::string prefix_;  // "handoff-<incarnation>-<instance>"
  int lock_fd_ = -1;
  std::uint32_t next_ = 0;
};

/// Random bits from the kernel: keys and names must not be guessed.
std::uint64_t random_bits();

/// libfabric's shm provider installs handlers for SIGBUS, SIGSEGV, SIGTERM and SIGINT with its first
/// endpoint. A library must not: this puts the former handlers back when it ends.
class signal_handlers_kept {
 public:
  signal_handlers_kept();
  ~signal_handlers_kept();
  signal_handlers_kept(const signal_handlers_kept&) = delete;
  signal_handlers_kept& operator=(const signal_handlers_kept&) = delete;

 private:
  std::array<struct sigaction, 4> saved_;
};

}  // namespace handoff::transport::fabric
