#include "actors/prefill/prefill_actor.hpp"

#include <algorithm>

namespace handoff {

prefill_state::prefill_state(prefill_interface::pointer self, prefill_settings settings,
                             transfer_engine_interface engine)
    : self_(self),
      settings_(std::move(settings)),
      engine_(std::move(engine)),
      desk_(room_side::source, settings_.desk) {
  settings_.rooms.next_transfer = &next_transfer_;
}

// -- engine ------------------------------------------------------------------------------------------------

void prefill_state::offer(offer_call& call) {
  room_key key{call.room, {}};
  const auto* grave = desk_.graves.find(call.room);
  if (grave && grave->unclaimed) {
    desk_.graves.claim(call.room);
    return desk_.reject(grave->key, grave->reason);
  }
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

void prefill_state::send(const send_call& call) {
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

void prefill_state::abort(const abort_call& call) {
  auto i = rooms_.find(call.room);
  if (i == rooms_.end()) return;
  auto reason = call.reason;
  reason.origin = settings_.rooms.origin;
  step(i->second, [&](auto& machine, auto now, auto& out) { machine.abort(reason, now, out); });
}

quiet_watch::answer prefill_state::quiesce(const quiesce_call& call) {
  auto answer = self_->make_response_promise<bool>();
  if (call.all ? rooms_.empty() : !rooms_.contains(call.room))
    answer.deliver(true);
  else
    quiet_.wait(call, answer);
  return answer;
}

// -- peers -------------------------------------------------------------------------------------------------

void prefill_state::frame(const room_frame& frame) {
  std::visit([&](const auto& message) { on(frame, message); }, frame.message);
}

prefill_state::room* prefill_state::room_for(const peer_view& from, room_key key, rank_coord source,
                                             rank_coord sink, bool may_open) {
  auto i = rooms_.find(key.room);
  if (i != rooms_.end()) return &i->second;
  desk_.graves.adopt(key);
  const auto* grave = desk_.graves.find(key.room);
  if (grave && key.attempt <= grave->key.attempt) {
    // Ended here: what a late message must hear is why.
    if (may_open && grave->poll == kv_poll::failed)
      tell(engine_, frame_call{from.peer, abort_message{key, source, sink, true, grave->reason}});
    return nullptr;
  }
  if (!may_open) return nullptr;
  if (rooms_.size() >= settings_.desk.rooms_max) {
    error full{errc::limit_exceeded,
               fmt::format("limits.rooms = {} source rooms are open", settings_.desk.rooms_max),
               settings_.rooms.origin};
    tell(engine_, frame_call{from.peer, abort_message{key, source, sink, true, std::move(full)}});
    return nullptr;
  }
  return &open(key);
}

void prefill_state::on(const room_frame& f, const announce_message& m) {
  auto* r = room_for(f.from, m.key, m.source, m.sink, true);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.announce(f.from, m, now, out); });
}

void prefill_state::on(const room_frame& f, const publish_message& m) {
  auto* r = room_for(f.from, m.key, m.source, m.sink, true);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.publish(f.from, m, now, out); });
}

void prefill_state::on(const room_frame& f, const room_result_message& m) {
  auto* r = room_for(f.from, m.key, m.source, m.sink, false);
  if (r) step(*r, [&](auto& machine, auto now, auto& out) { machine.result(f.from, m, now, out); });
}

void prefill_state::on(const room_frame& f, const abort_message& m) {
  if (auto* r = room_for(f.from, m.key, m.source, m.sink, false))
    return step(*r, [&](auto& machine, auto now, auto& out) { machine.peer_abort(f.from, m, now, out); });
  // Unknown or ended: nothing of it is in the provider. Remembered, should our engine offer it later.
  tell(engine_, frame_call{f.from.peer, drained_message{m.key, m.source, m.sink, true}});
  if (!desk_.graves.find(m.key.room))
    desk_.graves.bury(m.key, kv_poll::failed, m.reason, true, now_of(self_));
}

void prefill_state::transfer(const transfer_ended& ended) {
  auto i = transfers_.find(ended.done.id);
  if (i == transfers_.end()) return;
  auto r = rooms_.find(i->second);
  if (ended.done.drained) transfers_.erase(i);
  if (r != rooms_.end())
    step(r->second, [&](auto& machine, auto now, auto& out) { machine.transfer_done(ended.done, now, out); });
}

void prefill_state::down(const peer_down& peer) {
  std::vector<room_id> all;
  for (const auto& [id, r] : rooms_) all.push_back(id);
  for (auto id : all)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second,
           [&](auto& machine, auto now, auto& out) { machine.peer_lost(peer.peer, peer.reason, now, out); });
}

void prefill_state::endpoint_closed(const peer_endpoint_closed& peer) {
  peers_.erase(peer.peer);
  std::vector<room_id> all;
  for (const auto& [id, r] : rooms_) all.push_back(id);
  for (auto id : all)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second, [&](auto& machine, auto now, auto& out) { machine.peer_closed(peer.peer, now, out); });
}

void prefill_state::tick() {
  auto now = now_of(self_);
  if (tick_pending_ && now < tick_at_) return;  // one that an earlier deadline has replaced
  tick_pending_ = false;
  desk_.flush();
  desk_.graves.expire(now);
  for (auto id : desk_.timers.due(now))
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second, [](auto& machine, auto at, auto& out) { machine.tick(at, out); });
  schedule();
}

status_part prefill_state::status() const {
  status_part part{
      "prefill", {{"rooms", rooms_.size()}, {"peers", peers_.size()}, {"transfers", transfers_.size()}}, {}};
  desk_.count_into(part);
  return part;
}

// -- machines ----------------------------------------------------------------------------------------------

prefill_state::room& prefill_state::open(room_key key) {
  room fresh{sender_machine(key, settings_.rooms, now_of(self_)), {}, {}, key, false};
  return rooms_.emplace(key.room, std::move(fresh)).first->second;
}

template <class Event>
void prefill_state::step(room& r, Event&& event) {
  room_effects effects;
  event(r.machine, now_of(self_), effects);
  carry_out(r, effects);
  settle(r.machine.key().room);
}

void prefill_state::carry_out(room& r, room_effects& effects) {
  auto key = r.machine.key();
  if (key != r.key) {  // an offer adopted its attempt
    if (r.lease) (void)desk_.leases.rekey(*r.lease, key);
    if (r.slot) (void)desk_.slots.rekey(*r.slot, r.key, key);
    desk_.gate.forget(r.key);
    r.key = key;
  }
  for (auto& effect : effects) {
    if (auto* e = std::get_if<send_effect>(&effect)) {
      tell(engine_, frame_call{e->peer, std::move(e->message)});
    } else if (auto* e = std::get_if<write_row_effect>(&effect)) {
      write_row(desk_.row(e->slot), e->row, e->stamp);
    } else if (auto* e = std::get_if<submit_effect>(&effect)) {
      transfers_[e->what.id] = key.room;
      tell(engine_, submit_call{std::move(e->what)});
    } else if (auto* e = std::get_if<verdict_effect>(&effect)) {
      if (r.offered) desk_.verdict(key, *e, {});
    } else if (auto* e = std::get_if<lease_effect>(&effect); e && r.lease) {
      if (auto bad = desk_.leases.set_state(*r.lease, e->state))
        settings_.desk.log.error("lease-state", "{}: {}", to_string(key), to_string(bad));
      if (e->state != lease_state::released) continue;
      r.lease.reset();
      desk_.released(key);
    } else if (auto* e = std::get_if<fence_effect>(&effect)) {
      tell(engine_, fence_call{e->peer});
    } else if (auto* e = std::get_if<free_slot_effect>(&effect)) {
      if (auto bad = desk_.slots.give_back(e->slot, key))
        settings_.desk.log.error("slot-state", "{}: {}", to_string(key), to_string(bad));
      r.slot.reset();
    }
  }
}

/// The machine's deadline is noted; a finished machine leaves a tombstone.
void prefill_state::settle(room_id id) {
  auto i = rooms_.find(id);
  auto& r = i->second;
  if (!r.machine.finished()) {
    desk_.timers.set(id, r.machine.deadline());
    return schedule();
  }
  desk_.timers.set(id, time_point::max());
  desk_.graves.bury(r.machine.key(), r.machine.poll(), r.machine.reason(), !r.offered, now_of(self_));
  desk_.gate.forget(r.machine.key());
  rooms_.erase(i);
  quiet_.ended(id, rooms_.empty());
}

void prefill_state::schedule() {
  auto next = desk_.timers.next();
  auto now = now_of(self_);
  if (desk_.congested()) next = std::min(next, now + duration(std::chrono::milliseconds(10)));
  if (next == time_point::max() || (tick_pending_ && tick_at_ <= next)) return;
  tick_pending_ = true;
  tick_at_ = next;
  tell_after(std::max(next - now, duration(0)), prefill_interface(self_), handoff::tick{});
}

prefill_interface spawn_prefill(caf::actor_system& system, prefill_settings settings,
                                transfer_engine_interface engine) {
  auto behavior = [settings = std::move(settings), engine = std::move(engine)](
                      prefill_interface::pointer self) -> prefill_interface::behavior_type {
    auto state = std::make_shared<prefill_state>(self, settings, engine);
    return {
        [state](offer_call& m) { state->offer(m); },
        [state](const send_call& m) { state->send(m); },
        [state](const abort_call& m) { state->abort(m); },
        [state](const quiesce_call& m) { return state->quiesce(m); },
        [state](const room_frame& m) { state->frame(m); },
        [state](const transfer_ended& m) { state->transfer(m); },
        [state](const peer_up& m) { state->up(m); },
        [state](const peer_down& m) { state->down(m); },
        [state](const peer_endpoint_closed& m) { state->endpoint_closed(m); },
        [state](tick) { state->tick(); },
        [state](const status_call&) { return state->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
