#include "actors/transfer_engine/peer_desk.hpp"

#include "actors/transfer_engine/room_frames.hpp"

#include <algorithm>

namespace handoff {
namespace {

std::string transfer_text(transfer_id id) {
  return fmt::format("transfer {}", id.value);
}

error named_loss(const peer_session& p, const error& reason) {
  return {
      errc::peer_gone, fmt::format("engine {} is lost: {}", p.machine.peer().engine, to_string(reason)), {}};
}

}  // namespace

peer_desk::peer_desk(peer_desk_settings settings, transport::transport& transport, peer_desk_port& port)
    : settings_(std::move(settings)), transport_(&transport), port_(port) {}

void peer_desk::on(submit_call& call) {
  transport::transfer_done refused{.id = call.what.id, .peer = call.what.peer, .result = {}, .drained = true};
  // What is begun now would end with the session, when nobody hears of it any more.
  if (auto* p = find(refused.peer); p && p->machine.broken())
    refused.result = named_loss(*p, p->machine.reason());
  else
    refused.result = settings_.failures.draw(failure_kind::post, transfer_text(refused.id));
  if (!refused.result) {
    auto queued = transport_->submit(std::move(call.what));
    if (queued) return;
    refused.result = queued.error();
  }
  port_.tell_source(transfer_ended{std::move(refused)});
}

void peer_desk::on(const frame_call& call) {
  auto* p = find(call.peer);
  if (!p) return;  // its rooms were told
  if (p->mute) return last_word_by_control(*p, call.message);
  auto failed = settings_.failures.draw(
      failure_kind::frame, std::visit([](const auto& m) { return to_string(m.key); }, call.message));
  if (!failed) {
    auto sent = transport_->send_frame(call.peer, encode_room_message(call.message));
    if (sent) return;
    failed = sent.error();
  }
  p->mute = true;
  last_word_by_control(*p, call.message);
  peer_session_effects effects;
  p->machine.failed(failed, now_, effects);
  carry_out(*p, effects);
}

/// The fabric does not take it. The other side would hear only that its peer is gone, not why the room ended.
void peer_desk::last_word_by_control(peer_session& p, const room_message& message) {
  wire::header header;
  header.session = p.session();
  std::visit(
      [&](const auto& m) {
        if (is_last_word(std::decay_t<decltype(m)>::type) && p.words.size() < p.words_max)
          p.words.push_back(std::make_shared<const wire::bytes>(wire::encode(m, header)));
      },
      message);
  say_last_words(p);
}

/// The connection may be about to be made anew.
void peer_desk::say_last_words(peer_session& p) {
  if (p.connection == 0) return;
  for (auto& word : std::exchange(p.words, {})) port_.send({{p.connection}, std::move(word)});
}

void peer_desk::last_word_received(const control_received& what) {
  if (what.connection == condemned_) return;
  auto message = decode_room_message(what.header.type, *what.payload);
  if (!message) {
    settings_.log.warn("frame-malformed", "{}: {}", what.peer.engine, to_string(message.error()));
    condemned_ = what.connection;
    return close_control(what.connection.value);
  }
  // A sink asks for a session: it hears its source in those that it asked for.
  const bool asked_by_them = goes_to_source(*message);
  for (auto& [id, p] : peers_)
    if (p.machine.peer() == what.peer && p.session() == what.header.session &&
        p.asked.empty() == asked_by_them)
      return deliver(p, what.header.type, *what.payload);
}

void peer_desk::on(const fence_call& call) {
  auto* p = find(call.peer);
  if (!p) {
    port_.tell_source(peer_endpoint_closed{call.peer});
    port_.tell_sink(peer_endpoint_closed{call.peer});
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

void peer_desk::on(std::vector<transport::event>& batch) {
  for (auto& e : batch) std::visit([this](auto& event) { on(event); }, e);
}

void peer_desk::on(transport::peer_ready& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.connected(now_, effects);
  carry_out(*p, effects);
}

void peer_desk::on(transport::peer_failed& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  settings_.log.warn("peer-failed", "{} over {}: {}", p->machine.peer().engine, p->provider,
                     to_string(e.reason));
  peer_session_effects effects;
  p->machine.failed(e.reason, now_, effects);
  carry_out(*p, effects);
}

void peer_desk::on(transport::peer_silent& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.silent(now_, effects);
  carry_out(*p, effects);
}

void peer_desk::on(transport::peer_heard& e) {
  auto* p = find(e.peer, e.session);
  if (!p) return;
  peer_session_effects effects;
  p->machine.heard(now_, effects);
  carry_out(*p, effects);
}

void peer_desk::on(transport::peer_closed& e) {
  auto i = peers_.find(e.peer);
  if (i == peers_.end()) return;
  auto& p = i->second;
  tell_rooms_lost(
      p, {errc::peer_gone, fmt::format("the endpoint for {} was closed", p.machine.peer().engine), {}});
  port_.tell_source(peer_endpoint_closed{e.peer});
  port_.tell_sink(peer_endpoint_closed{e.peer});
  close_control(p.connection);
  settings_.log.info("peer-closed", "{} session {} over {}: {}", p.machine.peer().engine, p.session().value,
                     p.provider, e.fenced ? "fenced" : "closed");
  peers_.erase(i);
}

void peer_desk::on(transport::frame_received& e) {
  if (auto* p = find(e.peer, e.session)) deliver(*p, e.type, e.payload);
}

void peer_desk::deliver(peer_session& p, message_type type, std::span<const std::byte> payload) {
  if (!p.told) return;
  auto message = decode_room_message(type, payload);
  if (!message) {
    settings_.log.error("frame-malformed", "{}: {}", p.machine.peer().engine, to_string(message.error()));
    peer_session_effects effects;
    p.machine.failed(message.error(), now_, effects);
    return carry_out(p, effects);
  }
  if (!addressed_to(*message, settings_.self.rank)) {
    ++unroutable_frames_;
    return;
  }
  bool to_source = goes_to_source(*message);
  room_frame frame{view(p), std::move(*message)};
  if (to_source)
    port_.tell_source(std::move(frame));
  else
    port_.tell_sink(std::move(frame));
}

void peer_desk::on(transport::transfer_done& e) {
  if (!e.result) e.result = settings_.failures.draw(failure_kind::completion, transfer_text(e.id));
  if (auto* p = find(e.peer); p && e.result && e.result.code != errc::transport_fenced) {
    settings_.log.warn("transfer-failed", "to {}: {}", p->machine.peer().engine, to_string(e.result));
    peer_session_effects effects;
    p->machine.failed(e.result, now_, effects);
    carry_out(*p, effects);
  }
  // Where the fabric fails, the session is what is lost, to both sides alike.
  if (auto* p = find(e.peer);
      p && (e.result.code == errc::transport_completion || e.result.code == errc::transport_post))
    e.result = named_loss(*p, e.result);
  port_.tell_source(transfer_ended{std::move(e)});
}

// -- peers -------------------------------------------------------------------------------------------------

peer_session* peer_desk::find(peer_id id) {
  auto i = peers_.find(id);
  return i == peers_.end() ? nullptr : &i->second;
}

peer_session* peer_desk::find(peer_id id, session_id session) {
  auto* p = find(id);
  return p && p->session() == session ? p : nullptr;
}

void peer_desk::carry_out(peer_session& p, const peer_session_effects& effects) {
  for (const auto& effect : effects) {
    if (std::holds_alternative<peer_ready_effect>(effect)) {
      tell_rooms_ready(p);
    } else if (const auto* lost = std::get_if<rooms_lost_effect>(&effect)) {
      tell_rooms_lost(p, lost->reason);
    } else if (std::holds_alternative<fence_peer_effect>(effect)) {
      transport_->fence(p.id);
    } else if (std::holds_alternative<reconnect_control_effect>(effect)) {
      p.ticket = next_ticket_++;
      port_.dial(p.ticket, p.control_address);
    }
  }
}

void peer_desk::tell_rooms_ready(peer_session& p) {
  if (p.told) return;
  p.told = true;
  settings_.log.info("peer-ready", "{} incarnation {:016x} session {} over {} ({})", p.machine.peer().engine,
                     p.machine.peer().incarnation.value, p.session().value, p.provider, p.why);
  port_.tell_source(peer_up{view(p), {}});
  port_.tell_sink(peer_up{view(p), p.asked});
}

void peer_desk::tell_rooms_lost(peer_session& p, const error& reason) {
  if (p.lost) return;
  p.lost = true;
  settings_.log.warn("peer-lost", "{} session {}: {}", p.machine.peer().engine, p.session().value,
                     to_string(reason));
  if (!p.told && p.fallback) return fall_back(p, reason);
  if (p.told) {
    const auto named = reason.code == errc::peer_gone || reason.code == errc::transport_fenced
                           ? reason
                           : named_loss(p, reason);
    port_.tell_source(peer_down{p.id, named});
    port_.tell_sink(peer_down{p.id, named});
  } else if (!p.asked.empty()) {
    port_.tell_sink(connect_failed{p.asked, reason});
  }
}

peer_view peer_desk::view(const peer_session& p) const {
  peer_view v{p.id, p.session(), p.machine.peer(), p.layout, {}};
  for (const auto& buffer : p.layout->buffers)
    if (buffer.kind == buffer_kind::row) v.metadata_region = buffer.region;
  return v;
}

void peer_desk::close_control(std::uint64_t connection) {
  if (connection != 0) port_.close({{connection}});
}

void peer_desk::tick(time_point now) {
  now_ = now;
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
}

time_point peer_desk::deadline() const {
  auto next = time_point::max();
  for (const auto& [id, p] : peers_) next = std::min(next, p.machine.deadline());
  for (const auto& d : dialogues_) next = std::min(next, d.deadline);
  return next;
}

status_part peer_desk::status() const {
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
  settings_.failures.count_into(part);
  for (const auto& [id, p] : peers_)
    part.lines.push_back(fmt::format("{} {:016x} {} session {} over {} ({})", p.machine.peer().engine,
                                     p.machine.peer().incarnation.value, to_string(p.machine.state()),
                                     p.session().value, p.provider, p.why));
  return part;
}

}  // namespace handoff
