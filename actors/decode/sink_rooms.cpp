#include "actors/decode/sink_rooms.hpp"

#include "actors/room/reasons.hpp"

#include <algorithm>

namespace handoff {

sink_rooms::sink_rooms(sink_rooms_settings settings, fabric_port& engine)
    : rooms_base(room_side::sink, std::move(settings.desk), settings.failures, settings.rooms.origin, engine),
      context_(std::move(settings.rooms)) {}

// -- engine ------------------------------------------------------------------------------------------------

void sink_rooms::on(announce_call& call) {
  const auto* grave = desk_.graves.find(call.room);
  room_key key{call.room, {grave ? grave->key.attempt.value + 1 : 1}};
  if (rooms_.contains(call.room))
    return desk_.settings().log.error("room-duplicate", "{} was announced twice; the first stands",
                                      to_string(key));
  if (grave && grave->unclaimed) return refuse(call, key, error(grave->reason));
  if (draining_) return refuse(call, key, draining(origin_));
  if (rooms_.size() >= desk_.settings().rooms_max || desk_.congested())
    return refuse(call, key,
                  {errc::limit_exceeded,
                   rooms_.size() >= desk_.settings().rooms_max
                       ? fmt::format("limits.rooms = {} sink rooms are open", desk_.settings().rooms_max)
                       : "the engine does not take its events",
                   origin_});
  sink_room fresh{receiver_machine(key, context_, std::move(call.label), now_), {}, {}, call.peer, false};
  auto& r = rooms_.emplace(call.room, std::move(fresh)).first->second;
  auto peer = peers_by_name_.find(call.peer);
  if (peer == peers_by_name_.end()) {
    auto& waiting = waiting_[call.peer];
    if (waiting.empty()) engine_.connect(connect_call{call.peer});
    waiting.push_back(call.room);
  }
  step(r, [&](auto& machine, auto now, auto& out) {
    machine.announce(now, out);
    if (peer != peers_by_name_.end()) machine.peer_found(peer->second, now, out);
  });
}

/// The source may hold pages for it already.
void sink_rooms::refuse(const announce_call& call, room_key key, const error& reason) {
  desk_.graves.bury(key, kv_poll::failed, reason, false, now_);
  desk_.reject(key, reason);
  owe(key.room, call.peer);
  if (auto peer = peers_by_name_.find(call.peer); peer != peers_by_name_.end())
    engine_.send(
        {peer->second.peer, abort_message{key, peer->second.identity.rank, context_.rank, false, reason}});
}

void sink_rooms::on(publish_call& call) {
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
    refused.origin = origin_;
    machine.abort(refused, now, out);
  });
}

void sink_rooms::on(const commit_call& call) {
  auto i = uncommitted_.find(call.key);
  if (i == uncommitted_.end() || i->second != call.slot) return;
  complain("slot-state", call.key, desk_.slots.give_back(call.slot, call.key));
  uncommitted_.erase(i);
}

void sink_rooms::on(const abort_call& call) {
  auto reason = call.reason;
  reason.origin = origin_;
  if (auto i = rooms_.find(call.room); i != rooms_.end()) {
    return step(i->second, [&](auto& machine, auto now, auto& out) { machine.abort(reason, now, out); });
  }
  // A room that has succeeded meanwhile stays so: the engine finds its row when it hears of it.
  if (!desk_.graves.find(call.room))  // remembered, should the announce come after it
    desk_.graves.bury({call.room, {}}, kv_poll::failed, std::move(reason), true, now_);
}

// -- peers -------------------------------------------------------------------------------------------------

void sink_rooms::on(const room_frame& frame) {
  std::visit([&](const auto& message) { on(frame, message); }, frame.message);
}

void sink_rooms::on(const room_frame& f, const room_done_message& m) {
  told(m.key.room);
  if (auto* r = find(m.key.room)) {
    // The row is read here, once: the source sent room_done after the row was flushed.
    row_reading row = r->slot ? read_row(desk_.row(*r->slot), m.key)
                              : row_reading(fail(errc::metadata_missing, "no slot was published"));
    if (row)
      if (auto failed = failures_.draw(failure_kind::commit, to_string(m.key))) row = unexpected(failed);
    return step(*r, [&](auto& machine, auto now, auto& out) { machine.done(f.from, m, row, now, out); });
  }
  // Ended here: the source hears the verdict again.
  const auto* grave = desk_.graves.find(m.key.room);
  if (grave && grave->key == m.key)
    engine_.send(
        frame_call{f.from.peer, room_result_message{m.key, m.source, m.sink, grave->poll, grave->reason}});
}

void sink_rooms::on(const room_frame& f, const progress_message& m) {
  if (auto* r = find(m.key.room))
    step(*r, [&](auto& machine, auto now, auto& out) { machine.progress(f.from, m, now, out); });
}

void sink_rooms::on(const room_frame& f, const abort_message& m) {
  told(m.key.room);
  if (auto* r = find(m.key.room))
    step(*r, [&](auto& machine, auto now, auto& out) { machine.peer_abort(f.from, m, now, out); });
}

void sink_rooms::on(const room_frame& f, const drained_message& m) {
  told(m.key.room);
  if (auto* r = find(m.key.room))
    step(*r, [&](auto& machine, auto now, auto& out) { machine.drained(f.from, m, now, out); });
}

void sink_rooms::on(const peer_up& peer) {
  if (peer.asked.empty()) return;  // they will send to us as a sink only if we ask them
  peers_by_name_[peer.asked] = peer.view;
  auto waiting = std::move(waiting_[peer.asked]);
  waiting_.erase(peer.asked);
  for (auto id : waiting)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second, [&](auto& machine, auto now, auto& out) { machine.peer_found(peer.view, now, out); });
  // It may hold pages for rooms that nobody will announce.
  for (const auto& [id, asked] : untold_) {
    const auto* grave = asked == peer.asked ? desk_.graves.find(id) : nullptr;
    if (grave && grave->poll == kv_poll::failed)
      engine_.send({peer.view.peer,
                    abort_message{grave->key, peer.view.identity.rank, context_.rank, false, grave->reason}});
  }
}

void sink_rooms::told(room_id room) {
  if (auto* r = find(room)) r->source_knows = true;
  untold_.erase(room);
}

void sink_rooms::on(const connect_failed& what) {
  auto waiting = std::move(waiting_[what.asked]);
  waiting_.erase(what.asked);
  for (auto id : waiting)
    if (auto i = rooms_.find(id); i != rooms_.end())
      step(i->second,
           [&](auto& machine, auto now, auto& out) { machine.peer_unavailable(what.reason, now, out); });
}

void sink_rooms::on(const peer_down& peer) {
  std::erase_if(peers_by_name_, [&](const auto& entry) { return entry.second.peer == peer.peer; });
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_lost(peer.peer, peer.reason, now, out); });
}

void sink_rooms::on(const peer_endpoint_closed& peer) {
  step_all([&](auto& machine, auto now, auto& out) { machine.peer_closed(peer.peer, now, out); });
}

status_part sink_rooms::status() const {
  status_part part{
      "decode",
      {{"rooms", rooms_.size()}, {"uncommitted", uncommitted_.size()}, {"untold", untold_.size()}},
      {}};
  desk_.count_into(part);
  failures_.count_into(part);
  return part;
}

// -- machines ----------------------------------------------------------------------------------------------

void sink_rooms::carry_out(sink_room& r, room_effect& effect) {
  const auto* verdict = std::get_if<verdict_effect>(&effect);
  if (!verdict) return;
  const auto key = r.machine.key();
  if (verdict->poll == kv_poll::success && r.slot) uncommitted_[key] = *r.slot;
  desk_.verdict(key, *verdict, r.slot.value_or(slot_id{}));
}

void sink_rooms::buried(sink_room r) {
  if (r.machine.poll() == kv_poll::failed && !r.source_knows) owe(r.machine.key().room, std::move(r.asked));
}

/// What cannot be told because too much waits already, the source finds out by its own bounds.
void sink_rooms::owe(room_id room, std::string source) {
  const auto most = desk_.settings().rooms_max;
  if (untold_.size() >= most)
    std::erase_if(untold_, [&](const auto& entry) { return !desk_.graves.find(entry.first); });
  if (untold_.size() < most) untold_[room] = std::move(source);
}

}  // namespace handoff
