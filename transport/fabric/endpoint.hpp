// The local end of one peer and session: libfabric's endpoint with an address vector and a completion queue
// of its own, and the registrations that only this peer knows the keys of.
//
// Everything is per peer because providers punish sharing: with one endpoint for all peers a single write to
// a stopped peer on shm blocks the writes to all others; and with a queue of its own, nothing of a closed
// endpoint can complete later.
#pragma once

#include "transport/fabric/provider.hpp"
#include "transport/fabric/shm_lock.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace handoff::transport {
class plan_cursor;
}

namespace handoff::transport::fabric {

/// An operation's context: what a completion is attributed by. Lives as long as the endpoint.
struct operation {
  fi_context2 context;  ///< libfabric's scratch space; must come first
  enum class kind_t : std::uint8_t { receive, send, write, probe_write } kind = kind_t::receive;
  std::uint32_t buffer = 0;       ///< receive, send: index of the frame buffer
  plan_cursor* cursor = nullptr;  ///< write
  std::uint64_t bytes = 0;        ///< write
};

struct completion {
  operation* op = nullptr;  ///< null where the provider did not say
  std::size_t bytes = 0;    ///< received
  int failure = 0;          ///< 0, or a positive fi_errno
  std::string text;         ///< with a failure
};

class endpoint;
/// Ends the registrations and removes the file at once, and the object as soon as that is safe
/// (shm_neighbours.hpp).
struct retire_endpoint {
  void operator()(endpoint* closed) const;
};
using endpoint_ptr = std::unique_ptr<endpoint, retire_endpoint>;

class endpoint {
 public:
  /// @param shm_name for shm: the name of its file
  static expected<endpoint_ptr> make(std::shared_ptr<provider> p, const std::string& shm_name);
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  /// What peers connect to; errors where the provider cannot say.
  expected<std::vector<std::uint8_t>> address() const;
  /// Registers memory with a random key.
  expected<remote_region> add_region(std::byte* base, std::uint64_t bytes);
  /// Ends all registrations: nothing that names their keys can land any more.
  void drop_regions() { regions_.clear(); }
  std::size_t region_count() const { return regions_.size(); }
  /// Takes the peer's address. Nothing is exchanged yet. Errors: peer_gone (shm: its endpoint was closed
  /// meanwhile).
  expected<void> connect(std::span<const std::uint8_t> address);
  bool connected() const { return peer_address_ != FI_ADDR_NOTAVAIL; }

  // Each returns 0, -FI_EAGAIN (later; poll in between) or another negative fi_errno.
  std::int64_t post_receive(std::span<std::byte> buffer, operation& op);
  std::int64_t post_send(std::span<const std::byte> frame, operation& op);
  /// Completes when the bytes are visible in the peer's memory.
  std::int64_t post_write(const std::byte* from, std::uint64_t bytes, std::uint64_t remote_address,
                          std::uint64_t key, void* descriptor, operation& op);
  /// The descriptor of a registration, in the order of `add_region`.
  void* descriptor(std::size_t index) const;

  /// Moves the provider forward and fills `out`; returns how many.
  std::size_t poll(std::span<completion> out);
  /// False while a stopped process sits in the provider's lock, and on shm before `connect`: neither poll nor
  /// post then.
  bool approachable() const {
    return !broken_ && (shm_name_.empty() || connected()) && !own_lock_.taken() && !peer_lock_.taken();
  }
  /// From another thread, when this endpoint's thread hangs in the provider (watchdog.hpp).
  void break_locks();
  /// That has happened: what the provider keeps in shared memory may be in disorder.
  bool broken() const { return broken_; }

  /// Ends everything that could still move bytes; the object itself may live on.
  void close_endpoint() { endpoint_.reset(); }
  const std::string& shm_name() const { return shm_name_; }

  fid_cq* queue() const { return queue_.get(); }
  /// -1 where there is none.
  int wait_descriptor() const { return wait_fd_; }

 private:
  explicit endpoint(std::shared_ptr<provider> p) : provider_(std::move(p)) {}
  expected<void> open(const std::string& shm_name);
  bool read_error(completion& out);

  std::shared_ptr<provider> provider_;
  handle<fid_av> addresses_;
  handle<fid_cq> queue_;
  handle<fid_ep> endpoint_;
  std::vector<handle<fid_mr>> regions_;
  fi_addr_t peer_address_ = FI_ADDR_NOTAVAIL;
  int wait_fd_ = -1;
  std::string shm_name_, peer_shm_name_;
  shm_lock own_lock_, peer_lock_;
  std::atomic<bool> broken_{false};
};

}  // namespace handoff::transport::fabric
