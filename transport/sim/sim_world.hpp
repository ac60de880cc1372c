// Transports without a network: one thread, virtual time, one seed. The same calls in the same order give the
// same events at the same times. Processes are numbered from 0 in the order of `add`; each is one transport.
//
// What the wire does: frames between two processes keep their order unless a fault says otherwise, writes do
// not; a write's bytes are copied when it lands, from the source as it is then, into the target as it is
// registered then. A write that was posted lands even if its initiator has closed since; only the target
// (or its end) can refuse it.
#pragma once

#include "transport/sim/faults.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace handoff::transport {

class sim_wire;
class sim_transport;

class sim_world {
 public:
  explicit sim_world(std::uint64_t seed);
  ~sim_world();

  /// A new process. The sink must outlive the world; events come from inside advance and run_until.
  transport& add(settings limits, event_sink& sink);
  std::size_t size() const { return processes_.size(); }
  transport& at(std::size_t process);

  // -- time

  time_point now() const;
  /// Everything that is due until then happens, in order.
  void advance_to(time_point t);
  void advance(duration d) { advance_to(now() + d); }
  /// Steps from event to event until the predicate holds. False: `limit` of virtual time passed without.
  bool run_until(const std::function<bool()>& predicate, duration limit);

  /// The next thing until `limit` happens. False: there is none, and the clock stands at `limit`.
  bool step(time_point limit);
  /// Something of a process's own: it waits while the process is frozen and is forgotten when it is dead.
  void at(time_point when, std::size_t process, std::function<void()> what);
  /// Called before a write's bytes are copied into a process's memory.
  void watch_writes(
      std::function<void(std::size_t process, std::span<std::byte> target, std::span<const std::byte> source)>
          watch);

  // -- faults

  /// Faults of everything that `from` sends to `to`: its frames, its writes, its completions of `to`'s
  /// writes.
  link_faults& link(std::size_t from, std::size_t to);
  /// The same for every link, of later processes too.
  void set_links(const link_faults& faults);
  /// While a link is cut, all that is sent over it waits; then it goes on in its order, late writes too.
  void cut(std::size_t from, std::size_t to, bool is_cut);
  /// Does a peer learn at once that an endpoint has ended (a reset connection: peer_failed, its operations
  /// complete in error), or only by silence (its operations never complete)? At first: at once.
  void set_ends_are_told(bool told);

  /// A stopped process: it makes no progress, what is sent to it waits, its timers do not fire.
  void freeze(std::size_t process);
  /// It goes on: what waited happens now, in the order in which it came.
  void thaw(std::size_t process);
  /// A dead process: no further event, its endpoints end. Calls to its transport answer errc::closed.
  void kill(std::size_t process);

  const fault_counts& counts() const;

 private:
  std::unique_ptr<sim_wire> wire_;
  std::vector<std::unique_ptr<sim_transport>> processes_;
};

}  // namespace handoff::transport
