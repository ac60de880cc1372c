#include "actors/prefill/source_rooms.hpp"

#include "actors/room/reasons.hpp"
#include "messages/limits.hpp"

#include <algorithm>

namespace handoff {

source_rooms::source_rooms(source_rooms_settings settings, fabric_port& engine)
    : rooms_base(room_side::source, std::move(settings.desk), settings.failures, settings.rooms.origin,
                 engine),
      context_(std::move(settings.rooms)) {
  context_.next_transfer = &next_transfer_;
}

// -- engine ------------------------------------------------------------------------------------------------

void source_rooms::on(offer_call& call) {
  room_key key{call.room, {}};
  const auto* grave = desk_.graves.find(call.room);
  if (grave && grave->unclaimed) {
    desk_.graves.claim(call.room);
    return desk_.reject(grave->key, grave->reason);
  }
  if (draining_) return desk_.reject(key, draining(origin_));
  auto i = rooms_.find(call.room);
  if (i != rooms_.end() && i->second.machine.state() != sender_state::unclaimed)
    return desk_.settings().log.error("room-duplicate", "{} was offered twice; the first offer stands",
                                      to_string(key));
  if (i == rooms_.end() && (rooms_.size() >= desk_.settings().rooms_max || desk_.congested()))
    return desk_.reject(
        key, {errc::limit_exceeded,
              rooms_.size() >= desk_.settings().rooms_max
                  ? fmt::format("limits.rooms = {} source rooms are open", desk_.settings().rooms_max)
                  : "the engine does not take its events",
              origin_});
  auto& r = i == rooms_.end() ? open(key) : i->second;
  r.key = r.machine.key();
  auto lease = desk_.leases.reserve(r.key, call.pages);
  auto slot = lease ? desk_.slots.take(r.key) : expected<slot_id>(tl::make_unexpected(lease.error()));
  if (!slot) {
    if (lease) (void)desk_.leases.set_state(*lease, lease_state::released);
    auto reason = slot.error();
    reason.origin = origin_;
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
      refused.origin = origin_;
      machine.abort(refused, now, out);
    }
  });
}

void source_rooms::on(const abort_call& call) {
  auto i = rooms_.find(call.room);
  auto reason = call.reason;
  reason.origin = origin_;
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
    if (machine.state() == sender_state::unclaimed) machine.abort(draining(origin_), now, out);
  });
}

// -- peers -------------------------------------------------------------------------------------------------

void source_rooms::on(const room_frame& frame) {
  std::visit([&](const auto& message) { on(frame, message); }, frame.message);
}

/// Why a sink cannot open a room here now.
error source_rooms::no_room() const {
  if (draining_) return draining(origin_);
  if (rooms_.size() < desk_.settings().rooms_max) return {};
  return {errc::limit_exceeded,
          fmt::format("limits.rooms = {} source rooms are open", desk_.settings().rooms_max), origin_};
}

source_room* source_rooms::room_for(const peer_view& from, room_key key, rank_coord source, rank_coord sink,
                                    bool may_open) {
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
  engine_.send(frame_call{f.from.peer, drained_message{m.key, m.source, m.sink, true, m.reason}});
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

status_part source_rooms::status() const {
  status_part part{
      "prefill", {{"rooms", rooms_.size()}, {"peers", peers_.size()}, {"transfers", transfers_.size()}}, {}};
  desk_.count_into(part);
  failures_.count_into(part);
  return part;
}

// -- machines ----------------------------------------------------------------------------------------------

source_room& source_rooms::open(room_key key) {
  source_room fresh{sender_machine(key, context_, now_), {}, {}, key, false};
  return rooms_.emplace(key.room, std::move(fresh)).first->second;
}

/// An offer adopts the attempt that its sink names.
void source_rooms::follow(source_room& r) {
  const auto key = r.machine.key();
  if (key == r.key) return;
  if (r.lease) (void)desk_.leases.rekey(*r.lease, key);
  if (r.slot) (void)desk_.slots.rekey(*r.slot, r.key, key);
  desk_.gate.forget(r.key);
  r.key = key;
}

void source_rooms::carry_out(source_room& r, room_effect& effect) {
  const auto key = r.machine.key();
  if (auto* e = std::get_if<write_row_effect>(&effect)) {
    write_row(desk_.row(e->slot), e->row, e->stamp);
  } else if (auto* e = std::get_if<submit_effect>(&effect)) {
    transfers_[e->what.id] = {key.room, e->what.peer};
    engine_.submit(submit_call{std::move(e->what)});
  } else if (auto* e = std::get_if<verdict_effect>(&effect)) {
    if (r.offered) desk_.verdict(key, *e, {});
  }
}

void source_rooms::buried(source_room r) {
  for (const auto& frame : r.parked) on(frame);
}

}  // namespace handoff
