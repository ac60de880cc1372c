#include "actors/decode/decode_actor.hpp"

#include <algorithm>

namespace handoff {

decode_state::decode_state(decode_interface::pointer self, decode_settings settings,
                           transfer_engine_interface engine)
    : self_(self),
      settings_(std::move(settings)),
      engine_(std::move(engine)),
      desk_(room_side::sink, settings_.desk) {}

// -- engine ------------------------------------------------------------------------------------------------

void decode_state::announce(announce_call& call) {
  const auto* grave = desk_.graves.find(call.room);
  room_key key{call.room, {grave ? grave->key.attempt.value + 1 : 1}};
  if (rooms_.contains(call.room))
    return settings_.desk.log.error("room-duplicate", "{} was announced twice; the first stands",
                                    to_string(key));
  if (rooms_.size() >= settings_.desk.rooms_max || desk_.congested())
    return desk_.reject(key,
                        {errc::limit_exceeded,
                         rooms_.size() >= settings_.desk.rooms_max
                             ? fmt::format("limits.rooms = {} sink rooms are open", settings_.desk.rooms_max)
                             : "the engine does not take its events",
                         settings_.rooms.origin});
  room fresh{receiver_machine(key, settings_.rooms, std::move(call.label), now_of(self_)), {}, {}};
  auto& r = rooms_.emplace(call.room, std::move(fresh)).first->second;
  auto peer = peers_by_name_.find(call.peer);
  if (peer == peers_by_name_.end()) {
    auto& waiting = waiting_[call.peer];
    if (waiting.empty()) tell(engine_, connect_call{call.peer});
    waiting.push_back(call.room);
  }
  step(r, [&](auto& machine, auto now, auto& out) {
    machine.announce(now, out);
    if (peer != peers_by_name_.end()) machine.peer_found(peer->second, now, out);
  });
}

void decode_state::publish(publish_call& call) {
  auto i = rooms_.find(call.room);
  if (i == rooms_.end()) return;  // it ended; its events tell
  auto& r = i->second;
  auto key = r.machine.key();
  error refused;
  if (r.machine.state() != receiver_state::announced)
    refused = {errc::room_state,
               fmt::format("{} is {}: pages can be published once, when it waits for input", to_string(key),
                           to_string(r.machine.state())),
               {}};
  auto lease =
      refused ? expected<lease_id>(tl::make_unexpected(refused)) : desk_.leases.reserve(key, call.pages);
  auto slot = lease ? desk_.slots.take(key) : expected<slot_id>(tl::make_unexpected(lease.error()));
  if (slot) clear_stamp(desk_.row(*slot));
  step(r, [&](auto& machine, auto now, auto& out) {
    refused = slot ? error{} : slot.error();
    if (slot) {
      r.lease = *lease;
      r.slot = *slot;
      refused = machine.publish(std::move(call.pages), call.tokens, *slot, now, out);
    } else if (lease) {
      (void)desk_.leases.set_state(*lease, lease_state::released);
    }
    if (!refused || is_terminal(machine.poll())) return;
    refused.origin = settings_.rooms.origin;
    machine.abort(refused, now, out);
  });
}

void decode_state::commit(const commit_call& call) {
  auto i = uncommitted_.find(call.key);
  if (i == uncommitted_.end() || i->second != call.slot) return;
  if (auto bad = desk_.slots.give_back(call.slot, call.key))
    settings_.desk.log.error("slot-state", "{}: {}", to_string(call.key), to_string(bad));
  uncommitted_.erase(i);
}

void decode_state::abort(const abort_call& call) {
  if (auto i = rooms_.find(call.room); i != rooms_.end()) {
    auto reason = call.reason;
    reason.origin = settings_.rooms.origin;
    return step(i->second, [&](auto& machine, auto now, auto& out) { machine.abort(reason, now, out); });
  }
  // A room that succeeded and was never committed gives its slot back.
  const auto* grave = desk_.graves.find(call.room);
  if (!grave) return;
  if (auto i = uncommitted_.find(grave->key); i != uncommitted_.end()) {
    clear_stamp(desk_.row(i->second));
    commit({grave->key, i->second});
  }
}

quiet_watch::answer decode_state::quiesce(const quiesce_call& call) {
  auto answer = self_->make_response_promise<bool>();
  if (call.all ? rooms_.empty() : !rooms_.contains(call.room))
    answer.deliver(true);
  else
    quiet_.wait(call, answer);
  return answer;
}

// -- peers -------------------------------------------------------------------------------------------------

void decode_state::frame(const room_frame& frame) {
  std::visit([&](const auto& message) { on(frame, message); }, frame.message);
}

decode_state::room* decode_state::live(room_key key) {
  auto i = rooms_.find(key.room);
  return i == rooms_.end() ? nullptr : &i->second;
}

void decode_state::on(const room_frame& f, const room_done_message& m) {
  if (auto* r = live(m.key)) {
    // The row is read here, once: the source sent room_done after the row was flushed.
    row_reading row = r->slot ? read_row(desk_.row(*r->slot), m.key)
                              : row_reading(fail(errc::metadata_missing, "no slot was published"));
    return step(*r, [&](auto& machine, auto now, auto& out) { machine.done(f.from, m, row, now, out); });
  }
  // Ended here: the source hears the verdict again.
  const auto* grave = desk_.graves.find(m.key.room);
  if (grave && grave->key == m.key)
    tell(engine_,
         frame_call{f.from.peer, room_result_message{m.key, m.source, m.sink, grave->poll, grave->reason}});
}

void decode_state::on(const room_frame& f, const abort_message& m) {
  if (auto* r = live(m.key))
    step(*r, [&](auto& machine, auto now, auto& out) { machine.peer_abort(f.from, m, now, out); });
}

void decode_state::on(const room_frame& f, const drained_message& m) {
  if (auto* r = live(m.key))
    step(*r, [&](auto& machine, auto now, auto& out) { machine.drained(f.from, m, now, out); });
}

void decode_state::up(const peer_up& peer) {
  if (peer.asked.empty()) return;  // they will send to us as a sink only if we ask them
  peers_by_name_[peer.asked] = peer.view;
  auto waiting = std::move(waiting_[peer.asked]);
  waiting_.erase(peer.asked);
  for (auto id : waiting)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second, [&](auto& machine, auto now, auto& out) { machine.peer_found(peer.view, now, out); });
}

void decode_state::failed(const connect_failed& what) {
  auto waiting = std::move(waiting_[what.asked]);
  waiting_.erase(what.asked);
  for (auto id : waiting)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second,
           [&](auto& machine, auto now, auto& out) { machine.peer_unavailable(what.reason, now, out); });
}

void decode_state::down(const peer_down& peer) {
  std::erase_if(peers_by_name_, [&](const auto& entry) { return entry.second.peer == peer.peer; });
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_lost(peer.peer, peer.reason, now, out); });
}

void decode_state::endpoint_closed(const peer_endpoint_closed& peer) {
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_closed(peer.peer, now, out); });
}

void decode_state::tick() {
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

status_part decode_state::status() const {
  status_part part{"decode", {{"rooms", rooms_.size()}, {"uncommitted", uncommitted_.size()}}, {}};
  desk_.count_into(part);
  return part;
}

// -- machines ----------------------------------------------------------------------------------------------

template <class Event>
void decode_state::step(room& r, Event&& event) {
  room_effects effects;
  event(r.machine, now_of(self_), effects);
  carry_out(r, effects);
  settle(r.machine.key().room);
}

/// Only where a peer comes or goes.
template <class Event>
void decode_state::step_all(Event&& event) {
  std::vector<room_id> all;
  for (const auto& [id, r] : rooms_) all.push_back(id);
  for (auto id : all)
    if (auto i = rooms_.find(id); i != rooms_.end()) step(i->second, event);
}

void decode_state::carry_out(room& r, room_effects& effects) {
  auto key = r.machine.key();
  for (auto& effect : effects) {
    if (auto* e = std::get_if<send_effect>(&effect)) {
      tell(engine_, frame_call{e->peer, std::move(e->message)});
    } else if (auto* e = std::get_if<verdict_effect>(&effect)) {
      if (e->poll == kv_poll::success && r.slot) uncommitted_[key] = *r.slot;
      desk_.verdict(key, *e, r.slot.value_or(slot_id{}));
    } else if (auto* e = std::get_if<lease_effect>(&effect)) {
      if (r.lease) {
        if (auto bad = desk_.leases.set_state(*r.lease, e->state))
          settings_.desk.log.error("lease-state", "{}: {}", to_string(key), to_string(bad));
      }
      if (e->state != lease_state::released) continue;
      r.lease.reset();
      desk_.released(key);
    } else if (auto* e = std::get_if<fence_effect>(&effect)) {
      tell(engine_, fence_call{e->peer});
    } else if (auto* e = std::get_if<free_slot_effect>(&effect)) {
      clear_stamp(desk_.row(e->slot));
      if (auto bad = desk_.slots.give_back(e->slot, key))
        settings_.desk.log.error("slot-state", "{}: {}", to_string(key), to_string(bad));
      r.slot.reset();
    }
  }
}

void decode_state::settle(room_id id) {
  auto i = rooms_.find(id);
  auto& r = i->second;
  if (!r.machine.finished()) {
    desk_.timers.set(id, r.machine.deadline());
    return schedule();
  }
  desk_.timers.set(id, time_point::max());
  desk_.graves.bury(r.machine.key(), r.machine.poll(), r.machine.reason(), false, now_of(self_));
  desk_.gate.forget(r.machine.key());
  rooms_.erase(i);
  quiet_.ended(id, rooms_.empty());
}

void decode_state::schedule() {
  auto next = desk_.timers.next();
  auto now = now_of(self_);
  if (desk_.congested()) next = std::min(next, now + duration(std::chrono::milliseconds(10)));
  if (next == time_point::max() || (tick_pending_ && tick_at_ <= next)) return;
  tick_pending_ = true;
  tick_at_ = next;
  tell_after(std::max(next - now, duration(0)), decode_interface(self_), handoff::tick{});
}

decode_interface spawn_decode(caf::actor_system& system, decode_settings settings,
                              transfer_engine_interface engine) {
  auto behavior = [settings = std::move(settings), engine = std::move(engine)](
                      decode_interface::pointer self) -> decode_interface::behavior_type {
    auto state = std::make_shared<decode_state>(self, settings, engine);
    return {
        [state](announce_call& m) { state->announce(m); },
        [state](publish_call& m) { state->publish(m); },
        [state](const commit_call& m) { state->commit(m); },
        [state](const abort_call& m) { state->abort(m); },
        [state](const quiesce_call& m) { return state->quiesce(m); },
        [state](const room_frame& m) { state->frame(m); },
        [state](const peer_up& m) { state->up(m); },
        [state](const connect_failed& m) { state->failed(m); },
        [state](const peer_down& m) { state->down(m); },
        [state](const peer_endpoint_closed& m) { state->endpoint_closed(m); },
        [state](tick) { state->tick(); },
        [state](const status_call&) { return state->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
