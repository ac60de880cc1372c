// The one thread of one provider: it owns every endpoint, posts and polls. Callers hand it commands through a
// queue; it hands back batches of events.
//
// Idle, it waits on descriptors where the provider has them. Where it has none (shm) it polls for
// settings::spin, then naps, longer and longer up to settings::nap_max; a command ends a nap at once.
#pragma once

#include "transport/fabric/peer_link.hpp"
#include "transport/fabric/shm_files.hpp"
#include "transport/fabric/watchdog.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace handoff::transport::fabric {

/// The sink, one batch at a time: engines of several providers share it.
class event_output {
 public:
  explicit event_output(event_sink& sink) : sink_(sink) {}
  void emit(std::vector<event>& events) {
    if (events.empty()) return;
    std::lock_guard guard(mutex_);
    sink_.on_events(events);
    events.clear();
  }

 private:
  std::mutex mutex_;
  event_sink& sink_;
};

class engine {
 public:
  /// Opens the provider and starts the thread.
  static expected<std::unique_ptr<engine>> start(const std::string& provider_name, const settings& limits,
                                                 counters& count, event_output& output);
  ~engine();

  // From the caller's thread. The first two wait for the engine thread's answer, never for a peer.
  expected<endpoint_record> open(peer_id peer, session_id session, std::shared_ptr<peer_state> state,
                                 std::vector<memory_region> regions);
  expected<void> connect(peer_id peer, endpoint_record remote);
  void submit(transfer t);
  void send(peer_id peer, outgoing_frame frame);
  void close(peer_id peer, bool fenced);

 private:
  using command = std::function<void(time_point now)>;

  engine(std::shared_ptr<provider> p, const settings& limits, counters& count, event_output& output);
  void enqueue(command c);
  void call(const std::function<void(time_point)>& c);
  expected<endpoint_record> open_here(peer_id peer, session_id session, std::shared_ptr<peer_state> state,
                                      const std::vector<memory_region>& regions);
  peer_link* find(peer_id peer);

  void run();
  bool take_commands(time_point now);
  bool step_links(time_point now);
  void wait(time_point now);
  void wait_for_descriptors(time_point until);
  void nap(time_point now, time_point until);
  void sleep(std::span<const int> descriptors, duration limit);

  std::shared_ptr<provider> provider_;
  std::optional<shm_files> files_;
  settings limits_;
  counters& count_;
  event_output& output_;

  // Engine thread only.
  std::map<peer_id, std::unique_ptr<peer_link>> links_;
  std::vector<event> events_;
  bool stopping_ = false;
  time_point last_moved_{}, last_active_{}, next_round_{};
  duration nap_{};

  // Between the threads.
  std::mutex mutex_;
  std::vector<command> commands_;  // under mutex_
  bool asleep_ = false;            // under mutex_
  int wake_fd_ = -1;

  watchdog watchdog_;  // where endpoints have locks in shared memory
  std::thread thread_;
};

}  // namespace handoff::transport::fabric
