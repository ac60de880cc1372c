#include "transport/fabric/shm_lock.hpp"

#include <atomic>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace handoff::transport::fabric {
namespace {

// struct smr_region of libfabric 1.17: version u8 at 0, pid int at 4, lock pthread_spinlock_t at 24.
constexpr unsigned char guarded_version = 4;
constexpr std::size_t pid_offset = 4, lock_offset = 24, page_bytes = 4096;

/// What a free spin lock looks like: 1 on x86, 0 elsewhere.
int free_value() {
  static const int value = [] {
    pthread_spinlock_t lock;
    pthread_spin_init(&lock, PTHREAD_PROCESS_SHARED);
    return int(lock);
  }();
  return value;
}

}  // namespace

shm_lock::shm_lock(const std::string& name) {
  const int fd = open(("/dev/shm/" + name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  void* page = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) return;
  const auto* bytes = static_cast<const unsigned char*>(page);
  int pid = 0;
  std::memcpy(&pid, bytes + pid_offset, sizeof(pid));
  if (bytes[0] != guarded_version || pid == 0) {
    munmap(page, page_bytes);
    return;
  }
  page_ = page;
  word_ = reinterpret_cast<int*>(static_cast<unsigned char*>(page) + lock_offset);
}

shm_lock::shm_lock(shm_lock&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), word_(std::exchange(other.word_, nullptr)) {}

shm_lock& shm_lock::operator=(shm_lock&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(word_, other.word_);
  return *this;
}

shm_lock::~shm_lock() {
  if (page_ != nullptr) munmap(page_, page_bytes);
}

bool shm_lock::taken() const {
  return word_ != nullptr && std::atomic_ref<int>(*word_).load(std::memory_order_relaxed) != free_value();
}

void shm_lock::break_open() const {
  if (word_ != nullptr) std::atomic_ref<int>(*word_).store(free_value(), std::memory_order_release);
}

}  // namespace handoff::transport::fabric
