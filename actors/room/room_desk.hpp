// What the prefill and the decode actor do alike for their rooms: verdicts through the poll gate to the
// engine, leases, tombstones, timers, counts. One per side of a rank. Pure.
#pragma once

#include "actors/lease/lease_table.hpp"
#include "actors/lease/slot_table.hpp"
#include "actors/log/logger.hpp"
#include "actors/poll_gate/poll_gate.hpp"
#include "actors/room/rank_calls.hpp"
#include "actors/room/room_event.hpp"
#include "actors/room/room_timers.hpp"
#include "actors/room/tombstones.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace handoff {

struct room_desk_settings {
  std::shared_ptr<const layout_descriptor> layout;
  std::shared_ptr<event_port> events;
  std::span<std::byte> rows;  ///< slot s is at s * row_bytes
  std::uint32_t slots = 0;
  std::uint32_t rooms_max = 0;
  std::uint32_t tombstones_max = 0;
  duration tombstone_time{};
  logger log;
  event_log lease_events{};
};

class room_desk {
 public:
  room_desk(room_side side, room_desk_settings settings);

  /// A changed verdict of this rank passes the gate of its group (of one) and goes to the engine.
  void verdict(room_key key, const verdict_effect& effect, slot_id slot);
  void released(room_key key);
  /// The engine's call failed before a machine could take it: verdict and `released` in one.
  void reject(room_key key, const error& reason);

  std::span<std::byte> row(slot_id slot) const;
  const room_desk_settings& settings() const { return settings_; }
  /// The engine does not take its events: no new rooms until it does.
  bool congested() const { return settings_.events->backlogged(side_); }
  /// When `tick` is due: the earliest room, or soon when events wait for the engine.
  time_point next_deadline(time_point now) const;
  void flush() { settings_.events->flush(side_); }

  void count_into(status_part& part) const;

  lease_table leases;
  slot_table slots;
  tombstones graves;
  room_timers timers;
  poll_gate gate;

 private:
  void push(room_key key, room_event::kind what, const gate_verdict& verdict, slot_id slot);

  room_side side_;
  room_desk_settings settings_;
  std::uint64_t succeeded_ = 0, failed_ = 0;
};

}  // namespace handoff
