// One simulated process: its clock, which runs and jumps by itself, and its parts with their mailboxes and
// timers, as actors have them. What waits for it waits while it is frozen and is forgotten when it is dead.
#pragma once

#include "actors/room/rank_calls.hpp"
#include "tools/sim/kernel.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <variant>

namespace handoff::sim {

enum class part : std::uint8_t { engine, source, sink, desk, directory, registry, network };
inline constexpr std::size_t part_count = 7;

using control_event = std::variant<control_opened, control_received, control_closed>;

class host : public transport::event_sink {
 public:
  /// `slot`: the place that it fills; who comes after a crash fills the same one.
  host(kernel& k, std::size_t slot, engine_identity self, transport::settings limits, duration skew,
       int drift_ppm);

  const engine_identity& identity() const { return self_; }
  const std::string& name() const { return self_.engine; }
  std::size_t slot() const { return slot_; }
  std::size_t index() const { return index_; }  ///< on the wire
  bool alive() const { return alive_; }
  bool frozen() const { return frozen_; }

  // -- its clock

  time_point now() const;
  void jump(duration forward);
  /// What its clock showed while it could not run, and what jumps added: not a wait that anything can bound.
  duration not_awake() const;

  // -- faults

  void freeze();
  void thaw();
  void kill();

  // -- its parts

  /// From part to part in order, soon.
  void post(part from, part to, std::function<void()> what);
  /// Its own doing, later.
  void later(duration d, std::function<void()> what);
  void later_at(time_point world_time, std::function<void()> what);

  virtual void on_control(part to, control_event& event) = 0;
  virtual std::optional<part> route(message_type type) const = 0;

 protected:
  void arm(part p, time_point local_deadline);
  virtual void tick(part p) = 0;
  virtual void rearm() = 0;

  kernel& k_;
  transport::transport* transport_;

 private:
  struct timer {
    bool pending = false;
    time_point at;
    time_point window;  ///< of 1 ms, in which it fired `fired` times
    unsigned fired = 0;
  };
  time_point world_time_of(time_point local) const;

  std::size_t slot_, index_;
  engine_identity self_;
  duration offset_;
  int drift_ppm_;
  duration jumped_{};
  bool alive_ = true, frozen_ = false;
  time_point frozen_since_;
  duration frozen_for_{};
  std::array<timer, part_count> timers_{};
  std::array<time_point, part_count * part_count> last_{};
};

}  // namespace handoff::sim
