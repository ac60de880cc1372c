// The router and the serving engines of a simulated world: which rooms there are, who calls what when, and
// who tries again.
#pragma once

#include "tools/sim/rank_host.hpp"
#include "tools/sim/world.hpp"

#include <functional>
#include <string>
#include <vector>

namespace handoff::sim {

class workload final : public engine_logic {
 public:
  /// `rank_of(slot)`: who is there now; null while nobody is.
  workload(kernel& k, const world_options& options, fault_set active,
           std::function<rank_host*(std::size_t)> rank_of,
           std::function<void(duration, std::function<void()>)> at_router);

  void start();
  /// Rooms of that slot whose process died are tried again, or not.
  void restarted(std::size_t slot);
  /// After the storm: one room for each pair, without any trouble, that must succeed.
  void start_aftermath();
  /// How many of those did not succeed.
  std::size_t failed_aftermath() const { return aftermath_; }
  /// No side is tried again from now on.
  void stop() { stopped_ = true; }
  bool over() const { return open_sides_ == 0; }

  void on_event(rank_host& rank, const engine_room& room, const queued_event& event) override;

 private:
  struct side_state {
    std::size_t slot = 0;
    unsigned tries = 0;
    bool over = false, running = false;
    std::vector<layout::range> chunks;  ///< to be sent when both sides are known
  };
  struct room_plan {
    room_id id;
    std::string peer;
    std::uint64_t tokens = 0, prefix = 0;
    unsigned tries_max = 1;
    bool after_storm = false;
    dice random{0};
    side_state sides[2];
  };

  bool on(fault kind) const { return has(active_, kind); }
  bool happens(fault kind, room_plan& r, double p);
  duration pause(room_plan& r, duration usual);
  side_state& side_of(room_plan& r, room_side side) { return r.sides[side == room_side::source ? 0 : 1]; }
  void plan_room(std::uint32_t number);
  void begin(std::size_t plan, room_side side, duration d);
  void begin_here(std::size_t plan, room_side side, rank_host& rank, unsigned waits);
  void again(std::size_t plan, room_side side, bool failed);
  void end(std::size_t plan, room_side side);
  void plan_troubles(std::size_t plan, room_side side, rank_host& rank);
  std::vector<layout::range> cut(room_plan& r);
  void send_chunks(std::size_t plan, rank_host& rank);
  void publish(std::size_t plan, rank_host& rank, unsigned waits);

  kernel& k_;
  const world_options& options_;
  fault_set active_;
  std::function<rank_host*(std::size_t)> rank_of_;
  std::function<void(duration, std::function<void()>)> at_router_;
  std::vector<room_plan> rooms_;
  std::size_t open_sides_ = 0;
  std::size_t aftermath_ = 0;  ///< rooms after the storm that have not succeeded on both sides
  bool stopped_ = false;
};

}  // namespace handoff::sim
