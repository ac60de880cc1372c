// Owners of libfabric's objects. Everything that `fi_close` ends is a fid; fi_info has its own free.
#pragma once

#include <memory>
#include <utility>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace handoff::transport::fabric {

/// Owns one fid_* object; closes it at the end. Objects must be closed before what they were made from.
template <class Fid>
class handle {
 public:
  handle() = default;
  handle(handle&& other) noexcept : fid_(std::exchange(other.fid_, nullptr)) {}
  handle& operator=(handle&& other) noexcept {
    if (this != &other) {
      reset();
      fid_ = std::exchange(other.fid_, nullptr);
    }
    return *this;
  }
  ~handle() { reset(); }

  void reset() {
    if (auto* fid = std::exchange(fid_, nullptr)) fi_close(&fid->fid);
  }
  Fid* get() const { return fid_; }
  Fid* operator->() const { return fid_; }
  explicit operator bool() const { return fid_ != nullptr; }
  /// Where an fi_* call writes the new object. @pre empty
  Fid** out() { return &fid_; }

 private:
  Fid* fid_ = nullptr;
};

struct free_info {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using info_ptr = std::unique_ptr<fi_info, free_info>;

}  // namespace handoff::transport::fabric
