#include "actors/prefill/source_rooms.hpp"

#include "actors/room/reasons.hpp"
#include "messages/limits.hpp"

#include <algorithm>

namespace handoff {

source_rooms::source_rooms(source_rooms_settings settings, fabric_port& engine)
    : settings_(std::move(settings)), engine_(engine), desk_(room_side::source, settings_.desk) {
  settings_.rooms.next_transfer = &next_transfer_;
}

// -- engine ------------------------------------------------------------------------------------------------

void source_rooms::on(offer_call& call) {
  room_key key{call.room, {}};
  const auto* grave = desk_.graves.find(call.room);
  if (grave && grave->unclaimed) {
    desk_.graves.claim(call.room);
    return desk_.reject(grave->key, grave->reason);
  }
  if (draining_) return desk_.reject(key, draining(settings_.rooms.origin));
  auto i = rooms_.find(call.room);
  if (i != rooms_.end() && i->second.machine.state() != sender_state::unclaimed)
    return settings_.desk.log.error("room-duplicate", "{} was offered twice; the first offer stands",
                                    to_string(key));
  if (i == rooms_.end() && (rooms_.size() >= settings_.desk.rooms_max || desk_.congested()))
    return desk_.reject(
        key, {errc::limit_exceeded,
              rooms_.size() >= settings_.desk.rooms_max
                  ? fmt::format("limits.rooms = {} source rooms are open", settings_.desk.rooms_max)
                  : "the engine does not take its events",
              settings_.rooms.origin});
  auto& r = i == rooms_.end() ? open(key) : i->second;
  r.key = r.machine.key();
  auto lease = desk_.leases.reserve(r.key, call.pages);
  auto slot = lease ? desk_.slots.take(r.key) : expected<slot_id>(tl::make_unexpected(lease.error()));
  if (!slot) {
    if (lease) (void)desk_.leases.set_state(*lease, lease_state::released);
    auto reason = slot.error();
    reason.origin = settings_.rooms.origin;
    desk_.reject(r.key,
                 reason);  // the machine, if peers know of it, ends without the engine hearing of it again
    return step(r, [&](auto& machine, auto now, auto& out) { machine.abort(reason, now, out); });
  }
  r.lease = *lease;
  r.slot = *slot;
  r.offered = true;
  step(r, [&](auto& machine, auto now, auto& out) {
    machine.offer(std::move(call.pages), call.tokens, *slot, call.lease, std::move(call.label), now, out);
  });
}

void source_rooms::on(const send_call& call) {
  auto i = rooms_.find(call.room);
  if (i == rooms_.end()) return;  // it ended; its events tell
  error refused;
  step(i->second, [&](auto& machine, auto now, auto& out) {
    refused = machine.send(call.what, call.last, call.row, now, out);
    // The engine cannot hear of a refused chunk otherwise, and without it the room cannot end well.
    if (refused && !is_terminal(machine.poll())) {
      refused.origin = settings_.rooms.origin;
      machine.abort(refused, now, out);
    }
  });
}

void source_rooms::on(const abort_call& call) {
  auto i = rooms_.find(call.room);
  auto reason = call.reason;
  reason.origin = settings_.rooms.origin;
  if (i == rooms_.end()) {  // remembered, should an offer or a sink come after it
    if (!desk_.graves.find(call.room))
      desk_.graves.bury({call.room, {}}, kv_poll::failed, std::move(reason), true, now_);
    return;
  }
  step(i->second, [&](auto& machine, auto now, auto& out) { machine.abort(reason, now, out); });
}

/// Rooms that only their sinks know of will never be offered now.
void source_rooms::on(const no_new_rooms&) {
  draining_ = true;
  step_all([&](auto& machine, auto now, auto& out) {
    if (machine.state() == sender_state::unclaimed) machine.abort(draining(settings_.rooms.origin), now, out);
  });
}

bool source_rooms::quiet(const quiesce_call& call) const {
  return call.all ? rooms_.empty() : !rooms_.contains(call.room);
}

// -- peers -------------------------------------------------------------------------------------------------

void source_rooms::on(const room_frame& frame) {
  std::visit([&](const auto& message) { on(frame, message); }, frame.message);
}

/// Why a sink cannot open a room here now.
error source_rooms::no_room() const {
  if (draining_) return draining(settings_.rooms.origin);
  if (rooms_.size() < settings_.desk.rooms_max) return {};
  return {errc::limit_exceeded,
          fmt::format("limits.rooms = {} source rooms are open", settings_.desk.rooms_max),
          settings_.rooms.origin};
}

source_rooms::room* source_rooms::room_for(const peer_view& from, room_key key, rank_coord source,
                                           rank_coord sink, bool may_open) {
  auto i = rooms_.find(key.room);
  bool open_here = i != rooms_.end();
  if (!open_here) desk_.graves.adopt(key);
  const auto* grave = desk_.graves.find(key.room);
  bool ended = grave && key.attempt <= grave->key.attempt;
  // A new offer does not adopt an attempt that has ended: its pages are free on the other side.
  if (open_here && (!ended || i->second.machine.key().attempt.value != 0)) return &i->second;
  if (ended) {
    // Ended here: what a late message must hear is why.
    if (may_open && grave->poll == kv_poll::failed)
      engine_.send(frame_call{from.peer, abort_message{key, source, sink, true, grave->reason}});
    return nullptr;
  }
  if (!may_open) return nullptr;
  if (auto reason = no_room()) {
    engine_.send(frame_call{from.peer, abort_message{key, source, sink, true, std::move(reason)}});
    return nullptr;
  }
  return &open(key);
}

// A newer attempt ends the running one. What its sink says waits until the last write of the old one has
// drained, for at most so many frames as a publish may have, twice.
void source_rooms::park(room_key key, const room_frame& frame) {
  auto i = rooms_.find(key.room);
  if (i == rooms_.end() || i->second.machine.key().attempt.value == 0 ||
      key.attempt <= i->second.machine.key().attempt)
    return;
  auto& parked = i->second.parked;
  if (!parked.empty()) {
    auto first = std::visit([](const auto& m) { return m.key.attempt; }, parked.front().message);
    if (key.attempt < first) return;
    if (first < key.attempt) parked.clear();
  }
  if (parked.size() < 2 * limits::publish_parts) parked.push_back(frame);
}

void source_rooms::on(const room_frame& f, const announce_message& m) {
  park(m.key, f);
  auto* r = room_for(f.from, m.key, m.source, m.sink, true);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.announce(f.from, m, now, out); });
}

void source_rooms::on(const room_frame& f, const publish_message& m) {
  park(m.key, f);
  auto* r = room_for(f.from, m.key, m.source, m.sink, true);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.publish(f.from, m, now, out); });
}

void source_rooms::on(const room_frame& f, const room_result_message& m) {
  auto* r = room_for(f.from, m.key, m.source, m.sink, false);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.result(f.from, m, now, out); });
}

void source_rooms::on(const room_frame& f, const abort_message& m) {
  park(m.key, f);
  if (auto* r = room_for(f.from, m.key, m.source, m.sink, false))
    return step(*r, [&](auto& machine, auto now, auto& out) { machine.peer_abort(f.from, m, now, out); });
  // Unknown or ended: nothing of it is in the provider. Remembered, should our engine offer it later.
  engine_.send(frame_call{f.from.peer, drained_message{m.key, m.source, m.sink, true}});
  const auto* grave = desk_.graves.find(m.key.room);
  if (!grave || grave->key.attempt < m.key.attempt)
    desk_.graves.bury(m.key, kv_poll::failed, m.reason, true, now_);
}

void source_rooms::on(const transfer_ended& ended) {
  auto i = transfers_.find(ended.done.id);
  if (i == transfers_.end()) return;
  auto r = rooms_.find(i->second.room);
  if (ended.done.drained) transfers_.erase(i);
  if (r != rooms_.end())
    step(r->second, [&](auto& machine, auto now, auto& out) { machine.transfer_done(ended.done, now, out); });
}

void source_rooms::on(const peer_up& peer) {
  peers_.insert(peer.view.peer);
}

void source_rooms::on(const peer_down& peer) {
  for (auto& [id, r] : rooms_)
    std::erase_if(r.parked, [&](const auto& frame) { return frame.from.peer == peer.peer; });
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_lost(peer.peer, peer.reason, now, out); });
}

void source_rooms::on(const peer_endpoint_closed& peer) {
  peers_.erase(peer.peer);
  std::erase_if(transfers_, [&](const auto& t) { return t.second.peer == peer.peer; });
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_closed(peer.peer, now, out); });
}

void source_rooms::tick(time_point now) {
  now_ = now;
  desk_.flush();
  desk_.graves.expire(now);
  for (auto id : desk_.timers.due(now))
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second, [](auto& machine, auto at, auto& out) { machine.tick(at, out); });
}

status_part source_rooms::status() const {
  status_part part{
      "prefill", {{"rooms", rooms_.size()}, {"peers", peers_.size()}, {"transfers", transfers_.size()}}, {}};
  desk_.count_into(part);
  settings_.failures.count_into(part);
  return part;
}

// -- machines ----------------------------------------------------------------------------------------------

source_rooms::room& source_rooms::open(room_key key) {
  room fresh{sender_machine(key, settings_.rooms, now_), {}, {}, key, false};
  return rooms_.emplace(key.room, std::move(fresh)).first->second;
}

template <class Event>
void source_rooms::step(room& r, Event&& event) {
  room_effects effects;
  event(r.machine, now_, effects);
  fail_on_purpose(r, effects);
  carry_out(r, effects);
  settle(r.machine.key().room);
}

/// Only where a peer comes or goes.
template <class Event>
void source_rooms::step_all(Event&& event) {
  std::vector<room_id> all;
  for (const auto& [id, r] : rooms_) all.push_back(id);
  for (auto id : all)
    if (auto i = rooms_.find(id); i != rooms_.end()) step(i->second, event);
}

void source_rooms::fail_on_purpose(room& r, room_effects& effects) {
  if (auto failed = draw_poll(settings_.failures, r.machine.key(), effects)) {
    failed.origin = settings_.rooms.origin;
    r.machine.abort(std::move(failed), now_, effects);
  }
}

void source_rooms::carry_out(room& r, room_effects& effects) {
  auto key = r.machine.key();
  if (key != r.key) {  // an offer adopted its attempt
    if (r.lease) (void)desk_.leases.rekey(*r.lease, key);
    if (r.slot) (void)desk_.slots.rekey(*r.slot, r.key, key);
    desk_.gate.forget(r.key);
    r.key = key;
  }
  for (auto& effect : effects) {
    if (auto* e = std::get_if<send_effect>(&effect)) {
      engine_.send(frame_call{e->peer, std::move(e->message)});
    } else if (auto* e = std::get_if<write_row_effect>(&effect)) {
      write_row(desk_.row(e->slot), e->row, e->stamp);
    } else if (auto* e = std::get_if<submit_effect>(&effect)) {
      transfers_[e->what.id] = {key.room, e->what.peer};
      engine_.submit(submit_call{std::move(e->what)});
    } else if (auto* e = std::get_if<verdict_effect>(&effect)) {
      if (r.offered) desk_.verdict(key, *e, {});
    } else if (auto* e = std::get_if<lease_effect>(&effect); e && r.lease) {
      if (auto bad = desk_.leases.set_state(*r.lease, e->state))
        settings_.desk.log.error("lease-state", "{}: {}", to_string(key), to_string(bad));
      if (e->state != lease_state::released) continue;
      r.lease.reset();
      desk_.released(key);
    } else if (auto* e = std::get_if<fence_effect>(&effect)) {
      engine_.fence(fence_call{e->peer});
    } else if (auto* e = std::get_if<free_slot_effect>(&effect)) {
      if (auto bad = desk_.slots.give_back(e->slot, key))
        settings_.desk.log.error("slot-state", "{}: {}", to_string(key), to_string(bad));
      r.slot.reset();
    }
  }
}

/// The machine's deadline is noted; a finished machine leaves a tombstone.
void source_rooms::settle(room_id id) {
  auto i = rooms_.find(id);
  auto& r = i->second;
  if (!r.machine.finished()) {
    desk_.timers.set(id, r.machine.deadline());
    return;
  }
  desk_.timers.set(id, time_point::max());
  desk_.graves.bury(r.machine.key(), r.machine.poll(), r.machine.reason(), !r.offered, now_);
  desk_.gate.forget(r.machine.key());
  auto parked = std::move(r.parked);
  rooms_.erase(i);
  ended_.push_back(id);
  for (const auto& frame : parked) on(frame);
}

time_point source_rooms::deadline() const {
  return desk_.next_deadline(now_);
}

}  // namespace handoff
