// The medium under all simulated transports: clock, queue of what happens when, random numbers, links and
// their faults, and the directory of endpoints.
#pragma once

#include "messages/message_type.hpp"
#include "transport/sim/faults.hpp"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace handoff::transport {

class sim_peer;
using endpoint_address = std::uint64_t;

/// A frame on its way.
struct sim_frame {
  message_type type = message_type::none;
  session_id session;
  std::uint64_t sequence = 0;
  std::uint16_t credits = 0;
  bool lost = false;  ///< only its credits arrive
  bool copy = false;  ///< a duplicate: its credits have arrived
  bool raw = false;
  std::vector<std::byte> payload;
};

/// A write on its way. The initiator keeps it as well, and turns `source` into a copy when it ends.
struct sim_write {
  endpoint_address from = 0;
  std::uint64_t operation = 0;
  std::uint64_t key = 0, address = 0;
  std::span<const std::byte> source;
  std::vector<std::byte> kept;
};

class sim_wire {
 public:
  using action = std::function<void()>;

  explicit sim_wire(std::uint64_t seed) : random_(seed) {}

  // -- time

  time_point now() const { return now_; }
  /// Something that happens in a process; it waits while the process is frozen and is forgotten when dead.
  void at(time_point when, std::size_t process, action what);
  /// The next thing until `limit` happens. False: there is none, and the clock stands at `limit`.
  bool step(time_point limit);

  // -- processes

  std::size_t add_process();
  bool frozen(std::size_t process) const { return processes_[process].frozen; }
  void freeze(std::size_t process) { processes_[process].frozen = true; }
  void thaw(std::size_t process);
  void end_process(std::size_t process) { processes_[process].dead = true; }

  // -- endpoints

  endpoint_address open(sim_peer& peer);
  /// @pre no endpoint is being called
  void close(endpoint_address address) { endpoints_.erase(address); }
  sim_peer* find(endpoint_address address) const;
  /// Every endpoint that is connected to this one learns that it has ended, after what was sent before.
  void tell_end(std::size_t from, endpoint_address address);

  // -- traffic; `from` is the process that sends

  void send(std::size_t from, endpoint_address to, sim_frame frame);
  void write(std::size_t from, endpoint_address to, std::shared_ptr<sim_write> write);

  std::uint64_t random_key() { return random_(); }
  bool chance(double probability);
  link_faults& link(std::size_t from, std::size_t to) { return state_of(from, to).faults; }
  void set_links(const link_faults& faults);
  /// Faults towards an endpoint; those of a default link if nobody is there.
  const link_faults& link_to(std::size_t from, endpoint_address to);

  /// While cut, frames, writes, completions and ends from here to there wait; then they go on in their order.
  void cut(std::size_t from, std::size_t to, bool is_cut);

  /// Called before a write's bytes are copied into a process's memory.
  std::function<void(std::size_t process, std::span<std::byte> target, std::span<const std::byte> source)>
      on_write;

  fault_counts counts;
  bool ends_are_told = true;

 private:
  struct process_state {
    bool frozen = false, dead = false;
    std::vector<action> waiting;
  };
  struct scheduled {
    std::size_t process = 0;
    action what;
  };
  struct link_state {
    link_faults faults;
    time_point last_arrival{};
    bool is_cut = false;
    std::vector<action> held;
  };

  link_state& state_of(std::size_t from, std::size_t to);
  duration delay(const link_faults& faults);
  time_point in_order(link_state& link);
  bool hold(std::size_t from, std::size_t to, action what);
  void tell_end(std::size_t from, endpoint_address other, std::size_t process);
  void land(endpoint_address to, const std::shared_ptr<sim_write>& write);
  void complete(std::size_t from, const sim_write& write, error result);

  time_point now_{};
  std::uint64_t next_order_ = 0;
  std::map<std::pair<time_point, std::uint64_t>, scheduled> queue_;
  std::vector<process_state> processes_;
  std::map<endpoint_address, sim_peer*> endpoints_;
  std::map<std::pair<std::size_t, std::size_t>, link_state> links_;
  link_faults default_faults_;
  std::mt19937_64 random_;
};

}  // namespace handoff::transport
