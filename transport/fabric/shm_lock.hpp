// libfabric 1.17's shm endpoints share one spin lock per endpoint, in the endpoint's file: a writer holds its
// target's while it copies (a megabyte at a time), a reader its own while it polls. A process that is stopped
// or killed in there leaves the lock taken, and everyone who asks for it spins for ever inside libfabric
// (measured: 3 of 30 stops in mid-write hang the target's polling thread). So: look before every call, stay
// away while it is taken, and, for those that slip between look and lock, a way to free it from outside
// (watchdog.hpp).
//
// Later libfabrics have no such lock; the file says which layout it has, and then nothing is guarded.
#pragma once

#include <string>

namespace handoff::transport::fabric {

/// A view of one endpoint's lock word through a mapping of our own.
class shm_lock {
 public:
  shm_lock() = default;
  /// @param name without libfabric's prefix. Unguarded where the file is missing or of another layout.
  explicit shm_lock(const std::string& name);
  shm_lock(shm_lock&& other) noexcept;
  shm_lock& operator=(shm_lock&& other) noexcept;
  ~shm_lock();

  bool guarded() const { return word_ != nullptr; }
  bool taken() const;
  /// Frees a lock whose holder is not running. The endpoint is not to be trusted after that.
  void break_open() const;

 private:
  void* page_ = nullptr;
  int* word_ = nullptr;
};

}  // namespace handoff::transport::fabric
