// The suite's endpoints as processes, which can be stopped and killed. The test's own process makes no
// libfabric call. HANDOFF_RIG_PROVIDER names the provider, HANDOFF_RIG_CHILD the executable.
#include "tests/transport/contract/rig.hpp"
#include "tests/transport/fabric/remote_call.hpp"

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace handoff::transport::contract {

namespace {

/// One child and the transport in it.
class remote_transport final : public transport {
 public:
  remote_transport(const settings& limits, recorder& events, std::uint64_t memory_bytes)
      : events_(events), memory_bytes_(memory_bytes) {
    const int memory_fd = memfd_create("rig", MFD_CLOEXEC);
    if (memory_fd < 0 || ftruncate(memory_fd, static_cast<off_t>(memory_bytes)) != 0)
      throw std::runtime_error("memfd");
    void* base =
        mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory_fd, 0);
    if (base == MAP_FAILED) throw std::runtime_error("mmap");
    base_ = static_cast<std::byte*>(base);
    std::array<int, 2> calls{}, events_pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, calls.data()) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, events_pair.data()) != 0)
      throw std::runtime_error("socketpair");
    start(calls[1], events_pair[1], memory_fd);
    for (int fd : {calls[1], events_pair[1], memory_fd}) ::close(fd);
    calls_ = calls[0];
    event_socket_ = events_pair[0];
    parcel hello;
    hello.put(std::string(HANDOFF_RIG_PROVIDER)).put(memory_bytes).put(limits);
    send_parcel(calls_, hello);
    reader_ = std::thread([this] { read_events(); });
  }

  ~remote_transport() override {
    if (!killed_) {
      int state = 0;
      waitpid(pid_, &state, 0);
      CHECK_MESSAGE((WIFEXITED(state) && WEXITSTATUS(state) == 0), "a rig's process ended with status ",
                    state);
    }
    shutdown(event_socket_, SHUT_RDWR);
    reader_.join();
    ::close(calls_);
    ::close(event_socket_);
    munmap(base_, memory_bytes_);
  }

  /// The process ends by itself; the destructor waits for it.
  void begin_leave() {
    if (killed_) return;
    ::kill(pid_, SIGCONT);
    send_parcel(calls_, parcel().put(call::leave));
  }

  std::byte* base() const { return base_; }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    int state = 0;
    waitpid(pid_, &state, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  void kill_process() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    killed_ = true;
  }

  std::vector<std::string> providers() const override { return {HANDOFF_RIG_PROVIDER}; }
  expected<region_id> register_region(memory_region region) override {
    parcel p;
    const bool null = region.base == nullptr;
    p.put(static_cast<std::uint64_t>(null ? 0 : region.base - base_))
        .put(region.bytes)
        .put(region.kind)
        .put(region.shown)
        .put(null);
    return answer<region_id>(call::register_region, p);
  }
  expected<void> unregister_region(region_id region) override {
    return answer<void>(call::unregister_region, parcel().put(region));
  }
  expected<endpoint_record> open_peer(peer_id peer, session_id session,
                                      const std::string& provider) override {
    return answer<endpoint_record>(call::open_peer, parcel().put(peer).put(session).put(provider));
  }
  expected<void> connect_peer(peer_id peer, const endpoint_record& remote) override {
    return answer<void>(call::connect_peer, parcel().put(peer).put(remote));
  }
  expected<void> submit(transfer t) override { return answer<void>(call::submit, parcel().put(t)); }
  expected<void> send_frame(peer_id peer, outgoing_frame frame) override {
    return answer<void>(call::send_frame, parcel().put(peer).put(frame));
  }
  void fence(peer_id peer) override { ask(call::fence, parcel().put(peer)); }
  void close_peer(peer_id peer) override { ask(call::close_peer, parcel().put(peer)); }
  status current_status() const override {
    return const_cast<remote_transport*>(this)->ask(call::status, {}).get<status>();
  }
  /// Events come over a socket of their own: those sent before the answer are waited for, as if there were
  /// one.
  void close() override {
    const auto sent = ask(call::close, {}).get<std::uint64_t>();
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return received_ >= sent; });
  }

 private:
  void start(int calls, int events, int memory) {
    // High numbers first, so that none is overwritten before it is moved.
    std::array<int, 3> high{};
    const std::array<int, 3> fds = {calls, events, memory};
    for (std::size_t i = 0; i < 3; ++i) high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 100);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      for (int i = 0; i < 3; ++i) dup2(high[static_cast<std::size_t>(i)], 3 + i);
      execl(HANDOFF_RIG_CHILD, HANDOFF_RIG_CHILD, nullptr);
      _exit(127);
    }
    for (int fd : high) ::close(fd);
  }

  void read_events() {
    parcel p;
    while (receive_parcel(event_socket_, p)) {
      std::array<event, 1> batch = {p.get<event>()};
      events_.on_events(batch);
      std::lock_guard lock(mutex_);
      ++received_;
      arrived_.notify_all();
    }
    std::lock_guard lock(mutex_);
    received_ = UINT64_MAX;  // the process is gone: nobody waits for more
    arrived_.notify_all();
  }

  parcel ask(call c, const parcel& arguments) {
    parcel request;
    request.put(c);
    std::vector<std::byte> bytes = request.bytes();
    bytes.insert(bytes.end(), arguments.bytes().begin(), arguments.bytes().end());
    parcel answer;
    if (!send_parcel(calls_, parcel(std::move(bytes))) || !receive_parcel(calls_, answer))
      throw std::runtime_error("a rig's process is gone");
    return answer;
  }
  template <class T>
  expected<T> answer(call c, const parcel& arguments) {
    parcel p = ask(c, arguments);
    return get_answer<T>(p);
  }

  recorder& events_;
  std::uint64_t memory_bytes_;
  std::byte* base_ = nullptr;
  int calls_ = -1, event_socket_ = -1;
  pid_t pid_ = -1;
  bool killed_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::uint64_t received_ = 0;
  std::thread reader_;
};

class process_rig final : public rig {
 public:
  explicit process_rig(const rig_options& options) : region_bytes_(options.region_bytes) {
    std::uint64_t bytes = 0;
    for (auto n : region_bytes_) bytes += n;
    for (std::size_t i = 0; i < options.endpoints; ++i) {
      settings limits = options.limits;
      limits.incarnation = {i + 1};
      transports_.emplace_back(std::make_unique<remote_transport>(limits, recorders_.emplace_back(), bytes));
    }
    for (std::size_t i = 0; i < options.endpoints; ++i)  // only now: they start side by side
      for (std::size_t r = 0; r < region_bytes_.size(); ++r) {
        const auto m = memory(i, r);
        const bool shown = r + options.hidden_regions < region_bytes_.size();
        if (!at(i).register_region({m.data(), m.size(), memory_kind::host, shown}))
          throw std::runtime_error("register_region");
      }
  }
  ~process_rig() override {
    for (auto& t : transports_) t->begin_leave();
  }

  transport& at(std::size_t endpoint) override { return *transports_.at(endpoint); }
  recorder& events(std::size_t endpoint) override { return recorders_.at(endpoint); }
  std::span<std::byte> memory(std::size_t endpoint, std::size_t region) override {
    std::uint64_t offset = 0;
    for (std::size_t r = 0; r < region; ++r) offset += region_bytes_[r];
    return {transports_.at(endpoint)->base() + offset, region_bytes_.at(region)};
  }
  bool wait_for(const std::function<bool()>& predicate, duration limit) override {
    return poll_until(predicate, limit);
  }
  void freeze(std::size_t endpoint) override { transports_.at(endpoint)->stop(); }
  void thaw(std::size_t endpoint) override { transports_.at(endpoint)->go_on(); }
  void kill(std::size_t endpoint) override { transports_.at(endpoint)->kill_process(); }

 private:
  std::vector<std::uint64_t> region_bytes_;
  std::deque<recorder> recorders_;
  std::deque<std::unique_ptr<remote_transport>> transports_;
};

}  // namespace

const provider_info& provider_under_test() {
  static const provider_info info{
      HANDOFF_RIG_PROVIDER " processes", HANDOFF_RIG_PROVIDER, {.freeze = true, .kill = true}};
  return info;
}

std::unique_ptr<rig> make_rig(const rig_options& options) {
  return std::make_unique<process_rig>(options);
}

}  // namespace handoff::transport::contract
