// Bare libfabric for the fact tests: no code of the transport, so that a fact is libfabric's alone. Each side
// of a fact is a forked child; the test itself makes no libfabric call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <sys/types.h>

namespace facts {

constexpr std::size_t memory_bytes = 4 << 20;

/// Commands to a target: it polls, unless it looks away.
inline constexpr int look_away = 1, look_again = 2, close_region = 3;

/// What a target tells its initiators, in memory that all children share.
struct target_card {
  std::atomic<int> ready{0};
  std::array<char, 128> address{};
  std::size_t address_bytes = 0;
  std::uint64_t base = 0, key = 0;
  std::atomic<int> command{0};  ///< set by the test, obeyed by the target
  std::atomic<int> obeyed{0};
  std::atomic<std::uint64_t> polls{0};
};

/// Pages shared by the test and its children.
struct shared_page {
  std::array<target_card, 3> targets;
  std::array<std::atomic<std::int64_t>, 16> numbers{};
  alignas(64) std::array<std::byte, memory_bytes> memory{};  ///< what targets register
};

/// Fabric, domain, queue; `add` makes endpoints in it.
class side {
 public:
  explicit side(const std::string& provider, bool wait_descriptor = false);
  /// An endpoint with an address vector of its own.
  struct port {
    fid_av* addresses = nullptr;
    fid_ep* endpoint = nullptr;
    fi_addr_t insert(const target_card& target);
  };
  port add();
  fid_mr* expose(void* base, std::size_t bytes, target_card& card);
  void introduce(const port& p, target_card& card);
  /// Queue entries read, errors included; `failures` counts those.
  int poll();

  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_cq* queue = nullptr;
  int completed = 0, failures = 0;

 private:
  fi_info* info_ = nullptr;
  bool virtual_addresses_ = false;
  std::string provider_;
};

/// fi_writemsg of the first `bytes` of `from` to the start of the target's memory.
long write_to(const side::port& p, fi_addr_t to, const void* from, std::size_t bytes,
              const target_card& target, std::uint64_t key, std::uint64_t flags);
/// Retries a post that returns -FI_EAGAIN for at most so long, polling in between.
long retry(side& s, int limit_ms, const std::function<long()>& post);
/// Polls until the predicate holds, at most so long.
bool poll_until(side& s, int limit_ms, const std::function<bool()>& predicate);

/// Runs `body` in a child; children that are left are killed and reaped when the scene ends.
class scene {
 public:
  scene();
  ~scene();
  pid_t start(const std::function<void()>& body);
  /// A target that polls, and obeys target_card::command.
  pid_t start_target(std::size_t index, const std::string& provider);
  /// Waits for a child to end by itself. True: with status 0.
  bool wait(pid_t child, int limit_ms = 10'000);
  bool until(const std::function<bool()>& predicate, int limit_ms = 10'000);
  shared_page& page() { return *page_; }

 private:
  shared_page* page_;
  std::array<pid_t, 8> children_{};
  std::array<bool, 8> ended_{};
  std::size_t count_ = 0;
};

}  // namespace facts
