#include "transport/fabric/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace handoff::transport::fabric {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto first_nap = microseconds(20);
/// A connection makes progress only when it is polled, and a refused post is tried again.
constexpr auto eager_nap_max = milliseconds(1);
/// No command and no event for so long: naps grow beyond nap_max, by this factor.
constexpr auto quiet_after = milliseconds(1000);
constexpr int quiet_factor = 4;
/// While some endpoints are busy, the others are looked at this often (a look costs 2 us on tcp).
constexpr auto look_at_others = microseconds(500);
/// The longest wait of all: timers are exact, this is for what nobody thought of.
constexpr auto longest_wait = milliseconds(100);

time_point now_steady() {
  return clock::now();
}

}  // namespace

expected<std::unique_ptr<engine>> engine::start(const std::string& provider_name, const settings& limits,
                                                counters& count, event_output& output) {
  auto p = open_provider(provider_name, limits.bind_address);
  if (!p) return tl::unexpected(p.error());
  std::unique_ptr<engine> result(new engine(std::move(*p), limits, count, output));
  if (provider_name == "shm") {
    auto files = shm_files::make(limits.incarnation);
    if (!files) return tl::unexpected(files.error());
    result->files_ = std::move(*files);
  }
  result->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (result->wake_fd_ < 0)
    return fail(errc::transport_provider, fmt::format("eventfd: {}", describe_failure("eventfd", errno)));
  result->thread_ = std::thread([e = result.get()] { e->run(); });
  pthread_setname_np(result->thread_.native_handle(), ("fabric-" + provider_name).c_str());
  return result;
}

engine::engine(std::shared_ptr<provider> p, const settings& limits, counters& count, event_output& output)
    : provider_(std::move(p)), limits_(limits), count_(count), output_(output) {
  if (provider_->caps.message_bytes_max != 0)
    limits_.write_bytes_max = std::min(limits_.write_bytes_max, provider_->caps.message_bytes_max);
}

engine::~engine() {
  if (thread_.joinable()) {
    call([this](time_point) {
      for (auto& [id, link] : links_) link->close(false, events_);
      links_.clear();
      stopping_ = true;
    });
    thread_.join();
  }
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

// -- the caller's side -----------------------------------------------------------------------------

void engine::enqueue(command c) {
  bool wake = false;
  {
    std::lock_guard guard(mutex_);
    commands_.push_back(std::move(c));
    wake = std::exchange(asleep_, false);
  }
  const std::uint64_t one = 1;
  if (wake && write(wake_fd_, &one, sizeof(one)) < 0) return;  // full: it is awake
}

void engine::call(const std::function<void(time_point)>& c) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  enqueue([&](time_point now) {
    c(now);
    std::lock_guard guard(mutex);
    done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

expected<endpoint_record> engine::open(peer_id peer, session_id session, std::shared_ptr<peer_state> state,
                                       std::vector<memory_region> regions) {
  expected<endpoint_record> result;
  call([&](time_point) { result = open_here(peer, session, std::move(state), regions); });
  return result;
}

expected<void> engine::connect(peer_id peer, endpoint_record remote) {
  expected<void> result;
  call([&](time_point now) {
    auto* link = find(peer);
    result = link ? link->connect(remote, now) : fail(errc::peer_unknown, "the peer was closed");
  });
  return result;
}

void engine::submit(transfer t) {
  enqueue([this, t = std::move(t)](time_point now) mutable {
    if (auto* link = find(t.peer)) {
      link->submit(std::move(t), now);
      return;
    }
    count_.transfers_active.sub();
    count_.transfers_failed.add();
    transfer_done done;
    done.id = t.id;
    done.peer = t.peer;
    done.result = error{errc::peer_gone, fmt::format("peer {} was closed", t.peer.value), {}};
    events_.emplace_back(std::move(done));
  });
}

void engine::send(peer_id peer, outgoing_frame frame) {
  enqueue([this, peer, frame = std::move(frame)](time_point now) mutable {
    if (auto* link = find(peer)) link->send(std::move(frame), now);
  });
}

void engine::close(peer_id peer, bool fenced) {
  enqueue([this, peer, fenced](time_point) {
    auto at = links_.find(peer);
    if (at == links_.end()) {
      events_.emplace_back(peer_closed{peer, {}, fenced});
      return;
    }
    at->second->close(fenced, events_);
    links_.erase(at);
  });
}

// -- the engine thread -----------------------------------------------------------------------------

expected<endpoint_record> engine::open_here(peer_id peer, session_id session,
                                            std::shared_ptr<peer_state> state,
                                            const std::vector<memory_region>& regions) {
  std::string name;
  if (files_) {
    if (auto ok = shm_files::check_space(); !ok) return tl::unexpected(ok.error());
    name = files_->next_name(peer, session);
  }
  auto e = endpoint::make(provider_, name);
  if (!e) return tl::unexpected(e.error());
  auto link = std::make_unique<peer_link>(peer, session, limits_, std::move(*e), std::move(state), count_);
  auto record = link->open(*provider_, regions);
  if (record) links_[peer] = std::move(link);
  return record;
}

peer_link* engine::find(peer_id peer) {
  auto at = links_.find(peer);
  return at == links_.end() ? nullptr : at->second.get();
}

void engine::run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // naps of 20 us are 20 us
  if (files_) watchdog_.watch_this_thread();
  last_moved_ = now_steady();
  while (!stopping_) {
    const auto now = now_steady();
    bool moved = take_commands(now);
    if (moved) last_active_ = now;
    moved |= step_links(now);
    if (!events_.empty()) last_active_ = now;  // heartbeats make none
    output_.emit(events_);
    if (moved) {
      last_moved_ = now;
      nap_ = {};
    } else if (!stopping_) {
      wait(now);
    }
  }
}

bool engine::take_commands(time_point now) {
  std::vector<command> taken;
  {
    std::lock_guard guard(mutex_);
    asleep_ = false;
    taken.swap(commands_);
  }
  for (auto& c : taken) c(now);
  return !taken.empty();
}

bool engine::step_links(time_point now) {
  bool moved = false;
  const bool all = !provider_->caps.wait_descriptor || now >= next_round_;
  if (all) next_round_ = now + look_at_others;
  for (auto& [id, link] : links_) {
    if (!all && link->quiet(now)) continue;
    watchdog::step watched(watchdog_, link->local());
    moved |= link->step(now, events_);
  }
  return moved;
}

void engine::wait(time_point now) {
  auto until = now + longest_wait;
  bool eager = false, hot = false;
  for (const auto& [id, link] : links_) {
    until = std::min(until, link->due());
    eager |= link->eager();
    hot |= link->hot_until() > now;
  }
  if (now - last_moved_ < limits_.spin || (hot && !provider_->caps.wait_descriptor)) {
    std::this_thread::yield();
    return;
  }
  next_round_ = {};  // a wait may end because of any of them
  nap_ = std::clamp<duration>(nap_ * 2, first_nap, longest_wait);
  if (eager) until = std::min<time_point>(until, now + std::min<duration>(nap_, eager_nap_max));
  if (provider_->caps.wait_descriptor)
    wait_for_descriptors(until);
  else
    nap(now, until);
}

/// fi_trywait says "again" while there is still something to do, thousands of times while connecting: then it
/// is polled again, but not without a pause that grows.
void engine::wait_for_descriptors(time_point until) {
  std::vector<fid_t> queues;
  std::vector<int> descriptors;
  for (const auto& [id, link] : links_) {
    queues.push_back(&link->local().queue()->fid);
    descriptors.push_back(link->local().wait_descriptor());
  }
  const bool may_wait = queues.empty() || fi_trywait(provider_->fabric.get(), queues.data(),
                                                     static_cast<int>(queues.size())) == FI_SUCCESS;
  const auto left = until - now_steady();
  if (may_wait)
    sleep(descriptors, left);
  else
    sleep({}, std::min<duration>({left, nap_, eager_nap_max}));
}

void engine::nap(time_point now, time_point until) {
  const bool quiet = now - last_active_ > quiet_after;
  nap_ = std::min<duration>(nap_, quiet ? limits_.nap_max * quiet_factor : limits_.nap_max);
  if (links_.empty()) nap_ = longest_wait;
  sleep({}, std::min<duration>(nap_, until - now_steady()));
}

void engine::sleep(std::span<const int> descriptors, duration limit) {
  {
    std::lock_guard guard(mutex_);
    if (!commands_.empty()) return;
    asleep_ = true;
  }
  std::vector<pollfd> fds = {{wake_fd_, POLLIN, 0}};
  for (int fd : descriptors) fds.push_back({fd, POLLIN, 0});
  const auto ns = std::max<std::int64_t>(limit.count(), 0);
  const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
  ppoll(fds.data(), fds.size(), &timeout, nullptr);
  std::uint64_t ignored = 0;
  if ((fds[0].revents & POLLIN) != 0 && read(wake_fd_, &ignored, sizeof(ignored)) < 0) return;
}

}  // namespace handoff::transport::fabric
