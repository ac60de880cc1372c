// The connect conversation, both sides. The asking side (a sink that was told of a room) finds the source's
// control address, connects, and offers an endpoint made for that peer; the asked side judges compatibility
// and layouts, makes its own endpoint, and answers. Then both endpoints probe each other.
#include "actors/room/reasons.hpp"
#include "actors/transfer_engine/peer_desk.hpp"

#include <algorithm>

namespace handoff {

template <class T>
void peer_desk::control(std::uint64_t connection, const T& message) {
  port_.send({{connection}, std::make_shared<const wire::bytes>(wire::encode(message))});
}

// -- asking ------------------------------------------------------------------------------------------------

void peer_desk::on(const connect_call& call) {
  for (auto& [id, p] : peers_) {
    if (p.asked != call.peer || p.lost) continue;
    if (p.told) port_.tell_sink(peer_up{view(p), p.asked});
    return;  // else it is probing, and rooms will be told
  }
  bool under_way = std::any_of(dialogues_.begin(), dialogues_.end(),
                               [&](const connect_dialogue& d) { return d.asked == call.peer; });
  if (under_way) return;
  connect_dialogue d;
  d.asked = call.peer;
  d.deadline = now_ + 2 * settings_.connect_timeout;  // one for finding, one for connecting
  dialogues_.push_back(std::move(d));
  port_.resolve(call.peer, settings_.self.rank, engine_role::prefill);
}

void peer_desk::on(const resolved& what) {
  auto i = std::find_if(dialogues_.begin(), dialogues_.end(), [&](const connect_dialogue& d) {
    return d.asked == what.peer && d.state == connect_dialogue::phase::resolving;
  });
  if (i == dialogues_.end()) return;
  if (what.reason) return give_up(*i, what.reason);
  replace_older(what.entry.identity);
  for (auto& [id, p] : peers_) {
    if (p.machine.peer() != what.entry.identity || !p.told || p.lost) continue;
    port_.tell_sink(peer_up{view(p), what.peer});  // known already, under another name
    dialogues_.erase(i);
    return;
  }
  i->entry = what.entry;
  i->providers = settings_.provider == "auto" ? transport_->providers() : std::vector{settings_.provider};
  i->why = settings_.provider == "auto" ? "auto: the best that works" : "asked for by transport.provider";
  dial(*i);
}

void peer_desk::dial(connect_dialogue& d) {
  d.state = connect_dialogue::phase::dialling;
  d.ticket = next_ticket_++;
  port_.dial(d.ticket, d.entry.control_address);
}

void peer_desk::on(const control_opened& what) {
  for (auto& d : dialogues_) {
    if (d.state != connect_dialogue::phase::dialling || d.ticket != what.ticket) continue;
    d.connection = what.connection.value;
    if (what.peer.incarnation != d.entry.identity.incarnation)
      return give_up(d, {errc::peer_gone,
                         fmt::format("{} restarted: {} answers as incarnation {:016x}, the registry has "
                                     "{:016x}",
                                     d.entry.identity.engine, d.entry.control_address,
                                     what.peer.incarnation.value, d.entry.identity.incarnation.value),
                         {}});
    return request(d);
  }
  for (auto& [id, p] : peers_) {
    if (p.ticket != what.ticket) continue;
    p.ticket = 0;
    if (p.connection == 0) {
      p.connection = what.connection.value;
      say_last_words(p);
    } else {
      // The fabric failed and the peer lives: last words may be under way on the connection that it knows.
      close_control(what.connection.value);
    }
    peer_session_effects effects;
    p.machine.control_reconnected(what.peer.incarnation, now_, effects);
    return carry_out(p, effects);
  }
  close_control(what.connection.value);
}

/// Offers an endpoint of the best provider that is left.
void peer_desk::request(connect_dialogue& d) {
  d.state = connect_dialogue::phase::requesting;
  d.session = next_session(d.entry.identity);
  asked_by_us_[d.entry.identity.incarnation] = d.session;
  error last{errc::transport_provider, "no provider is left to try: " + d.why, {}};
  while (!d.providers.empty()) {
    peer_id id{next_peer_++};
    auto endpoint = transport_->open_peer(id, d.session, d.providers.front());
    if (endpoint) {
      d.peer = id;
      control(d.connection, connect_request_message{settings_.self,
                                                    d.session,
                                                    {std::move(*endpoint)},
                                                    settings_.compatibility,
                                                    *settings_.layout,
                                                    settings_.control_address});
      return;
    }
    d.why += fmt::format("; not {}: {}", d.providers.front(), endpoint.error().detail);
    d.providers.erase(d.providers.begin());
    last = endpoint.error();
  }
  give_up(d, std::move(last));
}

void peer_desk::replied(connect_dialogue& d, const connect_reply_message& reply) {
  if (reply.session != d.session || reply.self.incarnation != d.entry.identity.incarnation)
    return give_up(d, {errc::wire_malformed,
                       fmt::format("{} answered for session {} instead of {}", reply.self.engine,
                                   reply.session.value, d.session.value),
                       {}});
  if (auto refusal = judge(reply.self, reply.compatibility, reply.layout, true)) {
    control(d.connection, refusal_message{for_wire(refusal)});  // they may have found nothing to refuse
    return give_up(d, std::move(refusal));
  }
  auto& p = add_peer(d.peer, reply.self, d.session, std::make_shared<const layout_descriptor>(reply.layout));
  p.asked = d.asked;
  p.provider = reply.endpoint.provider;
  p.why = d.why;
  p.control_address = d.entry.control_address;
  p.connection = d.connection;
  auto id = p.id;
  if (d.providers.size() > 1) {
    p.fallback = d;
    p.fallback->providers.erase(p.fallback->providers.begin());
    p.fallback->connection = 0;
    p.fallback->peer = {};
  }
  auto endpoint = reply.endpoint;
  dialogues_.erase(dialogues_.begin() + (&d - dialogues_.data()));
  auto connecting = transport_->connect_peer(id, endpoint);
  if (connecting) return;
  peer_session_effects effects;
  p.machine.failed(connecting.error(), now_, effects);
  carry_out(p, effects);
}

/// A refused provider leads to the next one; everything else is final.
void peer_desk::refused(connect_dialogue& d, const error& reason) {
  if (reason.code != errc::transport_provider || d.providers.size() < 2) return give_up(d, reason);
  d.why += fmt::format("; not {}: {}", d.providers.front(), reason.detail);
  d.providers.erase(d.providers.begin());
  transport_->close_peer(d.peer);
  d.peer = {};
  request(d);
}

/// The asking side cannot take our answer.
void peer_desk::refused_by_peer(const control_received& what, const error& reason) {
  for (auto& [id, p] : peers_) {
    if (p.connection != what.connection.value || p.machine.state() != peer_session_state::connecting)
      continue;
    settings_.log.warn("connect-refused", "by {}: {}", what.peer.engine, to_string(reason));
    peer_session_effects effects;
    p.machine.failed(reason, now_, effects);
    return carry_out(p, effects);
  }
}

void peer_desk::give_up(connect_dialogue& d, error reason) {
  settings_.log.warn("connect-failed", "\"{}\": {}", d.asked, to_string(reason));
  if (d.peer.value != 0) transport_->close_peer(d.peer);
  close_control(d.connection);
  port_.tell_sink(connect_failed{d.asked, std::move(reason)});
  dialogues_.erase(dialogues_.begin() + (&d - dialogues_.data()));
}

connect_dialogue* peer_desk::dialogue_of_connection(std::uint64_t connection) {
  for (auto& d : dialogues_)
    if (d.connection == connection) return &d;
  return nullptr;
}

/// The probe failed: the same peer over the next provider, without the rooms hearing of it.
void peer_desk::fall_back(peer_session& p, const error& reason) {
  auto d = std::move(*p.fallback);
  p.fallback.reset();
  d.why += fmt::format("; not {}: {}", p.provider, reason.detail);
  d.deadline = now_ + settings_.connect_timeout;
  settings_.log.warn("provider-fallback", "{}: {}", p.machine.peer().engine, d.why);
  dialogues_.push_back(std::move(d));
  dial(dialogues_.back());
}

// -- both --------------------------------------------------------------------------------------------------

void peer_desk::on(const control_received& what) {
  auto* d = dialogue_of_connection(what.connection.value);
  switch (what.header.type) {
    case message_type::connect_request: {
      auto request = wire::decode_payload<connect_request_message>(*what.payload);
      if (request) return asked_to_connect(what, *request);
      control(what.connection.value, refusal_message{request.error()});
      return close_control(what.connection.value);
    }
    case message_type::connect_reply: {
      if (!d) return;
      auto reply = wire::decode_payload<connect_reply_message>(*what.payload);
      return reply ? replied(*d, *reply) : give_up(*d, reply.error());
    }
    case message_type::refusal: {
      auto refusal = wire::decode_payload<refusal_message>(*what.payload);
      auto reason = refusal ? refusal->reason : refusal.error();
      return d ? refused(*d, reason) : refused_by_peer(what, reason);
    }
    case message_type::abort:
    case message_type::drained:
    case message_type::room_result:
      return last_word_received(what);
    default:
      settings_.log.warn("control-unexpected", "{} from {}", to_string(what.header.type), what.peer.engine);
  }
}

void peer_desk::on(const control_closed& what) {
  for (auto& d : dialogues_)
    if ((what.ticket != 0 && d.ticket == what.ticket) ||
        (d.connection != 0 && d.connection == what.connection.value)) {
      d.connection = 0;
      auto reason = what.reason;
      // Rooms wait for an engine, not for an address.
      const auto& engine = d.entry.identity.engine;
      if (!engine.empty() && reason.detail.find(engine) == std::string::npos)
        reason.detail = fmt::format("engine {}: {}", engine, reason.detail);
      return give_up(d, std::move(reason));
    }
  for (auto& [id, p] : peers_) {
    bool reconnecting = what.ticket != 0 && p.ticket == what.ticket;
    bool current = p.connection != 0 && p.connection == what.connection.value;
    if (!reconnecting && !current) continue;
    peer_session_effects effects;
    if (reconnecting)
      p.machine.control_refused(what.reason, now_, effects);
    else
      p.machine.control_lost(now_, effects);
    (reconnecting ? p.ticket : p.connection) = 0;
    return carry_out(p, effects);
  }
}

error peer_desk::judge(const engine_identity& peer, const compatibility_record& record,
                       const layout_descriptor& layout, bool they_send) {
  auto verdict = they_send ? compare(record, settings_.compatibility, settings_.rules)
                           : compare(settings_.compatibility, record, settings_.rules);
  if (verdict.refusal) return verdict.refusal;
  for (const auto& warning : verdict.warnings)
    settings_.log.warn("peer-differs", "{}: {}", peer.engine, warning);
  return they_send ? layout::judge_pair(layout, *settings_.layout)
                   : layout::judge_pair(*settings_.layout, layout);
}

// -- asked -------------------------------------------------------------------------------------------------

void peer_desk::asked_to_connect(const control_received& what, const connect_request_message& request) {
  auto refuse = [&](const error& reason) {
    settings_.log.warn("connect-refused", "{}: {}", request.self.engine, to_string(reason));
    control(what.connection.value, refusal_message{for_wire(reason)});
  };
  if (request.self != what.peer)
    return refuse(
        {errc::peer_refused,
         fmt::format("hello came from {}, connect_request from {}", what.peer.engine, request.self.engine),
         {}});
  if (draining_)
    return refuse(draining(fmt::format("{} {}", settings_.self.engine, to_string(settings_.self.rank))));
  if (auto reason = judge(request.self, request.compatibility, request.layout, false)) return refuse(reason);
  if (peers_.size() >= settings_.peers_max)
    return refuse({errc::limit_exceeded,
                   fmt::format("{} has transport.peers_max = {} peers already", settings_.self.engine,
                               settings_.peers_max),
                   {}});
  if (auto last = asked_by_them_.find(request.self.incarnation);
      last != asked_by_them_.end() && request.session <= last->second)
    return refuse({errc::peer_refused,
                   fmt::format("session {} of {} is not newer than session {}", request.session.value,
                               request.self.engine, last->second.value),
                   {}});
  replace_older(request.self);

  peer_id id{next_peer_++};
  const endpoint_record* picked = nullptr;
  auto endpoint = accept(request, id, picked);
  if (!endpoint) return refuse(endpoint.error());
  asked_by_them_[request.self.incarnation] = request.session;
  auto& p =
      add_peer(id, request.self, request.session, std::make_shared<const layout_descriptor>(request.layout));
  p.provider = picked->provider;
  p.why = fmt::format("asked for by {}", request.self.engine);
  p.control_address = request.control_address;
  p.connection = what.connection.value;
  control(what.connection.value, connect_reply_message{settings_.self, request.session, std::move(*endpoint),
                                                       settings_.compatibility, *settings_.layout});
  auto connecting = transport_->connect_peer(id, *picked);
  if (connecting) return;
  peer_session_effects effects;
  p.machine.failed(connecting.error(), now_, effects);
  carry_out(p, effects);
}

/// Our endpoint for the first offer that works here.
expected<endpoint_record> peer_desk::accept(const connect_request_message& request, peer_id peer,
                                            const endpoint_record*& picked) {
  std::string why;
  for (const auto& offer : request.endpoints) {
    if (offer.provider == "shm" && offer.host_id != settings_.host_id) {
      why += " shm: not the same host;";
      continue;
    }
    if (settings_.provider != "auto" && offer.provider != settings_.provider) {
      why += fmt::format(" {}: transport.provider asks for {};", offer.provider, settings_.provider);
      continue;
    }
    auto endpoint = transport_->open_peer(peer, request.session, offer.provider);
    if (endpoint) {
      picked = &offer;
      return endpoint;
    }
    why += fmt::format(" {}: {};", offer.provider, endpoint.error().detail);
  }
  return fail(errc::transport_provider,
              fmt::format("{} serves none of the offered providers:{}", settings_.self.engine, why));
}

/// Another life of the same rank is over, and so is an older session of the same life.
void peer_desk::replace_older(const engine_identity& peer) {
  for (auto& [id, p] : peers_) {
    const auto& old = p.machine.peer();
    if (old.engine != peer.engine || old.rank != peer.rank || old.incarnation == peer.incarnation) continue;
    tell_rooms_lost(p,
                    {errc::peer_gone,
                     fmt::format("{} restarted as incarnation {:016x}", peer.engine, peer.incarnation.value),
                     {}});
    transport_->fence(id);
  }
}

session_id peer_desk::next_session(const engine_identity& peer) const {
  auto last = asked_by_us_.find(peer.incarnation);
  return {last == asked_by_us_.end() ? 1 : last->second.value + 1};
}

peer_session& peer_desk::add_peer(peer_id id, const engine_identity& peer, session_id session,
                                  std::shared_ptr<const layout_descriptor> layout) {
  peer_session p(id, peer_session_machine(peer, session, settings_.sessions, now_));
  p.layout = std::move(layout);
  return peers_.insert_or_assign(id, std::move(p)).first->second;
}

}  // namespace handoff
