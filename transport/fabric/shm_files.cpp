#include "transport/fabric/shm_files.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace handoff::transport::fabric {
namespace {

namespace fs = std::filesystem;

constexpr const char* directory = "/dev/shm";
constexpr std::uint64_t endpoint_bytes = 16u << 20;    // what one endpoint's file takes on libfabric 1.17
constexpr std::uint64_t slack_bytes = 4u << 20;        // touching a page that is not there any more is SIGBUS
constexpr std::size_t prefix_length = 8 + 16 + 1 + 8;  // "handoff-" incarnation "-" instance

constexpr std::array kept_signals = {SIGBUS, SIGSEGV, SIGTERM, SIGINT};

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/// "handoff-" + 16 hex digits + "-" + 8 hex digits.
bool has_prefix(const std::string& name) {
  if (name.size() <= prefix_length || name.compare(0, 8, "handoff-") != 0 || name[24] != '-') return false;
  for (std::size_t i = 8; i < prefix_length; ++i)
    if (i != 24 && !is_hex(name[i])) return false;
  return true;
}

std::string lock_path(const std::string& prefix) {
  return fmt::format("{}/{}.lock", directory, prefix);
}

std::string reason() {
  return std::generic_category().message(errno);
}

/// Opens and locks `path`; -1 where another process holds it. The file may be removed by a cleaner between
/// open and flock: then the lock is on a file that nobody finds, and it is tried again.
int take_lock(const std::string& path, int open_flags) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    const int fd = open(path.c_str(), open_flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -1;
    struct stat opened {
    }, named{};
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      close(fd);
      return -1;
    }
    if (fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino)
      return fd;
    close(fd);
  }
  errno = EAGAIN;
  return -1;
}

}  // namespace

std::string local_host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat s {};
  if (stat(directory, &s) != 0) return boot;
  return fmt::format("{}/{}.{}", boot, s.st_dev, s.st_ino);
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  auto* at = reinterpret_cast<unsigned char*>(&bits);
  for (std::size_t have = 0; have < sizeof(bits);) {
    const auto n = getrandom(at + have, sizeof(bits) - have, 0);
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  return bits;
}

shm_files::shm_files(shm_files&& other) noexcept
    : prefix_(std::move(other.prefix_)), lock_fd_(std::exchange(other.lock_fd_, -1)), next_(other.next_) {}

shm_files& shm_files::operator=(shm_files&& other) noexcept {
  std::swap(prefix_, other.prefix_);
  std::swap(lock_fd_, other.lock_fd_);
  std::swap(next_, other.next_);
  return *this;
}

shm_files::~shm_files() {
  if (lock_fd_ < 0) return;
  unlink(lock_path(prefix_).c_str());
  close(lock_fd_);
}

expected<shm_files> shm_files::make(incarnation_id incarnation) {
  shm_files result;
  result.prefix_ =
      fmt::format("handoff-{:016x}-{:08x}", incarnation.value, static_cast<std::uint32_t>(random_bits()));
  const auto path = lock_path(result.prefix_);
  result.lock_fd_ = take_lock(path, O_CREAT);
  if (result.lock_fd_ < 0)
    return fail(errc::transport_provider, fmt::format("shm: cannot lock {}: {}", path, reason()));
  remove_stale();
  return result;
}

std::string shm_files::next_name(peer_id peer, session_id session) {
  return fmt::format("{}-{}-{}-{}", prefix_, peer.value, session.value, next_++);
}

expected<void> shm_files::check_space() {
  struct statvfs s {};
  if (statvfs(directory, &s) != 0)
    return fail(errc::transport_provider, fmt::format("shm: cannot look at {}: {}", directory, reason()));
  const std::uint64_t free_bytes = std::uint64_t{s.f_bavail} * s.f_frsize;
  if (s.f_blocks != 0 && free_bytes < endpoint_bytes + slack_bytes)
    return fail(errc::transport_provider,
                fmt::format("shm: one more endpoint needs {} MiB of {}, {} MiB are free; enlarge it (Docker: "
                            "--shm-size) or use tcp",
                            (endpoint_bytes + slack_bytes) >> 20, directory, free_bytes >> 20));
  return {};
}

bool shm_files::is_name(const std::string& name) {
  if (!has_prefix(name) || name.size() > 128) return false;
  for (char c : name.substr(prefix_length))
    if (c != '-' && !(c >= '0' && c <= '9')) return false;
  return true;
}

std::string shm_files::owner_of(const std::string& name) {
  return name.substr(0, prefix_length);
}

int shm_files::remove_stale() {
  std::map<std::string, std::vector<fs::path>> by_prefix;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const auto name = entry.path().filename().string();
    if (has_prefix(name)) by_prefix[name.substr(0, prefix_length)].push_back(entry.path());
  }
  int removed = 0;
  for (const auto& [prefix, paths] : by_prefix) {
    // A living owner made its lock file before any other. Where there is none, its files have no owner.
    const int fd = take_lock(lock_path(prefix), 0);
    if (fd < 0 && errno != ENOENT) continue;
    for (const auto& path : paths)
      if (unlink(path.c_str()) == 0) ++removed;
    if (fd >= 0) close(fd);
  }
  return removed;
}

signal_handlers_kept::signal_handlers_kept() {
  for (std::size_t i = 0; i < saved_.size(); ++i) sigaction(kept_signals[i], nullptr, &saved_[i]);
}

signal_handlers_kept::~signal_handlers_kept() {
  for (std::size_t i = 0; i < saved_.size(); ++i) sigaction(kept_signals[i], &saved_[i], nullptr);
}

}  // namespace handoff::transport::fabric
