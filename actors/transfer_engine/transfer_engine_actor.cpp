#include "actors/transfer_engine/transfer_engine_actor.hpp"

#include "actors/transfer_engine/room_frames.hpp"

#include <algorithm>

namespace handoff {

transfer_engine_state::transfer_engine_state(transfer_engine_interface::pointer self,
                                             transfer_engine_settings settings,
                                             std::shared_ptr<transport::transport> transport,
                                             caf::actor broker, bootstrap_client_interface directory)
    : self_(self),
      settings_(std::move(settings)),
      transport_(std::move(transport)),
      broker_(std::move(broker)),
      directory_(std::move(directory)) {}

void transfer_engine_state::submit(submit_call& call) {
  transport::transfer_done refused{.id = call.what.id, .peer = call.what.peer, .result = {}, .drained = true};
  auto queued = transport_->submit(std::move(call.what));
  if (queued) return;
  refused.result = queued.error();
  tell(actors_.prefill, transfer_ended{std::move(refused)});
}

void transfer_engine_state::send(const frame_call& call) {
  auto* p = find(call.peer);
  if (!p) return;  // its rooms were told, or will be
  auto sent = transport_->send_frame(call.peer, encode_room_message(call.message));
  if (sent) return;
  peer_session_effects effects;
  p->machine.failed(sent.error(), now_of(self_), effects);
  carry_out(*p, effects);
}

void transfer_engine_state::fence(const fence_call& call) {
  auto* p = find(call.peer);
  if (!p) {
    tell(actors_.prefill, peer_endpoint_closed{call.peer});
    tell(actors_.decode, peer_endpoint_closed{call.peer});
    return;
  }
  settings_.log.warn("peer-fenced", "{} is shut out: its writes did not drain in time",
                     p->machine.peer().engine);
  tell_rooms_lost(*p,
                  {errc::transport_fenced,
                   fmt::format("{} was shut out: its writes did not drain in time", p->machine.peer().engine),
                   {}});
  transport_->fence(call.peer);
}

// -- the transport -----------------------------------------------------------------------------------------

void transfer_engine_state::events(transport_batch& batch) {
  for (auto& e : *batch.events) std::visit([this](auto& event) { on(event); }, e);
  schedule();
}

void transfer_engine_state::on(transport::peer_ready& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.connected(now_of(self_), effects);
  carry_out(*p, effects);
}

void transfer_engine_state::on(transport::peer_failed& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  settings_.log.warn("peer-failed", "{} over {}: {}", p->machine.peer().engine, p->provider,
                     to_string(e.reason));
  peer_session_effects effects;
  p->machine.failed(e.reason, now_of(self_), effects);
  carry_out(*p, effects);
}

void transfer_engine_state::on(transport::peer_silent& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.silent(now_of(self_), effects);
  carry_out(*p, effects);
}

void transfer_engine_state::on(transport::peer_heard& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.heard(now_of(self_), effects);
  carry_out(*p, effects);
}

void transfer_engine_state::on(transport::peer_closed& e) {
  auto i = peers_.find(e.peer);
  if (i == peers_.end()) return;
  auto& p = i->second;
  tell_rooms_lost(
      p, {errc::peer_gone, fmt::format("the endpoint for {} was closed", p.machine.peer().engine), {}});
  tell(actors_.prefill, peer_endpoint_closed{e.peer});
  tell(actors_.decode, peer_endpoint_closed{e.peer});
  close_control(p.connection);
  settings_.log.info("peer-closed", "{} session {} over {}: {}", p.machine.peer().engine, p.session().value,
                     p.provider, e.fenced ? "fenced" : "closed");
  peers_.erase(i);
}

void transfer_engine_state::on(transport::frame_received& e) {
  auto* p = find(e.peer, e.session);
  if (!p || !p->told) return;
  auto message = decode_room_message(e.type, e.payload);
  if (!message) {
    settings_.log.error("frame-malformed", "{}: {}", p->machine.peer().engine, to_string(message.error()));
    peer_session_effects effects;
    p->machine.failed(message.error(), now_of(self_), effects);
    return carry_out(*p, effects);
  }
  if (!addressed_to(*message, settings_.self.rank)) {
    ++unroutable_frames_;
    return;
  }
  const auto& receiver = goes_to_source(*message) ? actors_.prefill : actors_.decode;
  tell(receiver, room_frame{view(*p), std::move(*message)});
}

void transfer_engine_state::on(transport::transfer_done& e) {
  if (auto* p = find(e.peer); p && e.result && e.result.code != errc::transport_fenced) {
    settings_.log.warn("transfer-failed", "to {}: {}", p->machine.peer().engine, to_string(e.result));
    peer_session_effects effects;
    p->machine.failed(e.result, now_of(self_), effects);
    carry_out(*p, effects);
  }
  tell(actors_.prefill, transfer_ended{std::move(e)});
}

// -- peers -------------------------------------------------------------------------------------------------

peer_session* transfer_engine_state::find(peer_id id) {
  auto i = peers_.find(id);
  return i == peers_.end() ? nullptr : &i->second;
}

peer_session* transfer_engine_state::find(peer_id id, session_id session) {
  auto* p = find(id);
  return p && p->session() == session ? p : nullptr;
}

void transfer_engine_state::carry_out(peer_session& p, const peer_session_effects& effects) {
  for (const auto& effect : effects) {
    if (std::holds_alternative<peer_ready_effect>(effect)) {
      tell_rooms_ready(p);
    } else if (const auto* lost = std::get_if<rooms_lost_effect>(&effect)) {
      tell_rooms_lost(p, lost->reason);
    } else if (std::holds_alternative<fence_peer_effect>(effect)) {
      transport_->fence(p.id);
    } else if (std::holds_alternative<reconnect_control_effect>(effect)) {
      p.ticket = next_ticket_++;
      tell(broker_, control_dial{p.ticket, p.control_address, caf::actor_cast<caf::actor>(self_)});
    }
  }
  schedule();
}

void transfer_engine_state::tell_rooms_ready(peer_session& p) {
  if (p.told) return;
  p.told = true;
  settings_.log.info("peer-ready", "{} incarnation {:016x} session {} over {} ({})", p.machine.peer().engine,
                     p.machine.peer().incarnation.value, p.session().value, p.provider, p.why);
  tell(actors_.prefill, peer_up{view(p), {}});
  tell(actors_.decode, peer_up{view(p), p.asked});
}

void transfer_engine_state::tell_rooms_lost(peer_session& p, const error& reason) {
  if (p.lost) return;
  p.lost = true;
  settings_.log.warn("peer-lost", "{} session {}: {}", p.machine.peer().engine, p.session().value,
                     to_string(reason));
  if (!p.told && p.fallback) return fall_back(p, reason);
  if (p.told) {
    auto named = reason;
    if (reason.code != errc::peer_gone && reason.code != errc::transport_fenced)
      named = {errc::peer_gone,
               fmt::format("engine {} is lost: {}", p.machine.peer().engine, to_string(reason)),
               {}};
    tell(actors_.prefill, peer_down{p.id, named});
    tell(actors_.decode, peer_down{p.id, named});
  } else if (!p.asked.empty()) {
    tell(actors_.decode, connect_failed{p.asked, reason});
  }
}

peer_view transfer_engine_state::view(const peer_session& p) const {
  peer_view v{p.id, p.session(), p.machine.peer(), p.layout, {}};
  for (const auto& buffer : p.layout->buffers)
    if (buffer.kind == buffer_kind::row) v.metadata_region = buffer.region;
  return v;
}

void transfer_engine_state::close_control(std::uint64_t connection) {
  if (connection != 0) tell(broker_, control_close{{connection}});
}

void transfer_engine_state::tick() {
  tick_pending_ = false;
  auto now = now_of(self_);
  for (auto& [id, p] : peers_) {
    if (p.machine.deadline() > now) continue;
    peer_session_effects effects;
    p.machine.tick(now, effects);
    carry_out(p, effects);
  }
  for (std::size_t i = 0; i < dialogues_.size();) {
    auto count = dialogues_.size();
    auto& d = dialogues_[i];
    if (d.deadline <= now)
      give_up(d, {errc::timed_out,
                  fmt::format("connecting to \"{}\" took longer than timeouts.connect_ms", d.asked),
                  {}});
    if (dialogues_.size() == count) ++i;
  }
  schedule();
}

void transfer_engine_state::schedule() {
  if (tick_pending_) return;
  auto next = time_point::max();
  for (const auto& [id, p] : peers_) next = std::min(next, p.machine.deadline());
  for (const auto& d : dialogues_) next = std::min(next, d.deadline);
  if (next == time_point::max()) return;
  tick_pending_ = true;
  // A wait that begins later may be shorter than the pending one; suspicion is decided to this precision.
  auto delay = std::clamp(next - now_of(self_), duration(0), duration(std::chrono::milliseconds(100)));
  tell_after(delay, transfer_engine_interface(self_), handoff::tick{});
}

status_part transfer_engine_state::status() const {
  auto t = transport_->current_status();
  status_part part{"transfer_engine",
                   {{"peers", peers_.size()},
                    {"dialogues", dialogues_.size()},
                    {"transfers_active", t.transfers_active},
                    {"registrations", t.registrations},
                    {"frames_queued", t.frames_queued},
                    {"bytes_written", t.bytes_written},
                    {"writes_posted", t.writes_posted},
                    {"frames_sent", t.frames_sent},
                    {"frames_received", t.frames_received},
                    {"frames_dropped", t.frames_dropped + unroutable_frames_}},
                   {}};
  for (const auto& [id, p] : peers_)
    part.lines.push_back(fmt::format("{} {:016x} {} session {} over {} ({})", p.machine.peer().engine,
                                     p.machine.peer().incarnation.value, to_string(p.machine.state()),
                                     p.session().value, p.provider, p.why));
  return part;
}

transfer_engine_interface spawn_transfer_engine(caf::actor_system& system, transfer_engine_settings settings,
                                                std::shared_ptr<transport::transport> transport,
                                                caf::actor broker, bootstrap_client_interface directory) {
  auto behavior = [settings = std::move(settings), transport = std::move(transport),
                   broker = std::move(broker), directory = std::move(directory)](
                      transfer_engine_interface::pointer self) -> transfer_engine_interface::behavior_type {
    auto state = std::make_shared<transfer_engine_state>(self, settings, transport, broker, directory);
    return {
        [state](const rank_actors& m) { state->serve(m); },
        [state](submit_call& m) { state->submit(m); },
        [state](const frame_call& m) { state->send(m); },
        [state](const connect_call& m) { state->connect(m); },
        [state](const fence_call& m) { state->fence(m); },
        [state](transport_batch& m) { state->events(m); },
        [state](const control_opened& m) { state->opened(m); },
        [state](const control_received& m) { state->received(m); },
        [state](const control_closed& m) { state->closed(m); },
        [state](const resolved& m) { state->found(m); },
        [state](tick) { state->tick(); },
        [state](const status_call&) { return state->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
