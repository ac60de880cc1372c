// What the rooms of both sides of a rank do alike: step a room's machine, carry out the effects that concern
// only the desk and the transfer engine, keep its deadline, and leave a tombstone when it is over. Pure.
#pragma once

#include "actors/room/failure_injector.hpp"
#include "actors/room/rank_calls.hpp"
#include "actors/room/room_desk.hpp"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace handoff {

/// `Room` has a machine, its lease and its slot, while it has them.
template <class Room>
class rooms_base {
 public:
  rooms_base(const rooms_base&) = delete;
  rooms_base& operator=(const rooms_base&) = delete;

  /// No later than `deadline`.
  void tick(time_point now) {
    now_ = now;
    desk_.flush();
    desk_.graves.expire(now);
    for (auto id : desk_.timers.due(now))
      if (auto* r = find(id)) step(*r, [](auto& machine, auto at, auto& out) { machine.tick(at, out); });
  }
  time_point deadline() const { return desk_.next_deadline(now_); }

  bool quiet(const quiesce_call& call) const {
    return call.all ? rooms_.empty() : !rooms_.contains(call.room);
  }
  /// Rooms that ended since it was last asked.
  std::vector<room_id> take_ended() { return std::exchange(ended_, {}); }
  const room_desk& desk() const { return desk_; }

 protected:
  rooms_base(room_side side, room_desk_settings desk, const failure_injector& failures, std::string origin,
             fabric_port& engine)
      : desk_(side, std::move(desk)), engine_(engine), failures_(failures), origin_(std::move(origin)) {}
  ~rooms_base() = default;

  /// The machine may go by another attempt now.
  virtual void follow(Room&) {}
  /// The effects that only one side has, and the verdict.
  virtual void carry_out(Room& r, room_effect& effect) = 0;
  /// It is out of the table, its tombstone stands.
  virtual void buried(Room r) = 0;
  /// Only peers have spoken of it so far.
  virtual bool unclaimed(const Room&) const { return false; }

  Room* find(room_id id) {
    auto i = rooms_.find(id);
    return i == rooms_.end() ? nullptr : &i->second;
  }

  /// `event(machine, now, effects)`; the room may be gone when this returns.
  template <class Event>
  void step(Room& r, Event&& event) {
    room_effects effects;
    event(r.machine, now_, effects);
    if (auto failed = draw_poll(failures_, r.machine.key(), effects)) {
      failed.origin = origin_;
      r.machine.abort(std::move(failed), now_, effects);
    }
    follow(r);
    for (auto& effect : effects)
      if (!carry_out_alike(r, effect)) carry_out(r, effect);
    settle(r);
  }

  /// Only where a peer comes or goes.
  template <class Event>
  void step_all(Event&& event) {
    std::vector<room_id> all;
    for (const auto& [id, r] : rooms_) all.push_back(id);
    for (auto id : all)
      if (auto* r = find(id)) step(*r, event);
  }

  void complain(const char* what, room_key key, const error& problem) {
    if (problem) desk_.settings().log.error(what, "{}: {}", to_string(key), to_string(problem));
  }

  room_desk desk_;
  fabric_port& engine_;
  failure_injector failures_;
  std::string origin_;
  std::unordered_map<room_id, Room> rooms_;
  bool draining_ = false;
  time_point now_;  ///< of the event that is being handled

 private:
  bool carry_out_alike(Room& r, room_effect& effect) {
    const auto key = r.machine.key();
    if (auto* e = std::get_if<send_effect>(&effect)) {
      engine_.send(frame_call{e->peer, std::move(e->message)});
    } else if (auto* e = std::get_if<fence_effect>(&effect)) {
      engine_.fence(fence_call{e->peer});
    } else if (auto* e = std::get_if<lease_effect>(&effect)) {
      if (r.lease) complain("lease-state", key, desk_.leases.set_state(*r.lease, e->state));
      if (e->state == lease_state::released) {
        r.lease.reset();
        if (!unclaimed(r)) desk_.released(key);
      }
    } else if (auto* e = std::get_if<free_slot_effect>(&effect)) {
      clear_stamp(desk_.row(e->slot));
      complain("slot-state", key, desk_.slots.give_back(e->slot, key));
      r.slot.reset();
    } else {
      return false;
    }
    return true;
  }

  /// The machine's deadline is noted; a finished machine leaves a tombstone.
  void settle(Room& r) {
    const auto key = r.machine.key();
    desk_.timers.set(key.room, r.machine.finished() ? time_point::max() : r.machine.deadline());
    if (!r.machine.finished()) return;
    desk_.graves.bury(key, r.machine.poll(), r.machine.reason(), unclaimed(r), now_);
    desk_.gate.forget(key);
    auto gone = rooms_.extract(key.room);
    ended_.push_back(key.room);
    buried(std::move(gone.mapped()));
  }

  std::vector<room_id> ended_;
};

}  // namespace handoff
