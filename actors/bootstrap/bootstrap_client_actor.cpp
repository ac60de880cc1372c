#include "actors/bootstrap/bootstrap_client_actor.hpp"

#include <algorithm>

namespace handoff {

void bootstrap_client_state::enroll(const registration& what) {
  registration_ = what.what;
  auto& l = link_to(settings_.address);
  if (l.state == link_state::open) send_registration(l);
  schedule();
}

void bootstrap_client_state::resolve(resolve_call call) {
  bool is_address = call.peer.find(':') != std::string::npos;
  question q{std::move(call), {}, now_of(self_) + settings_.resolve_timeout};
  q.address = is_address ? q.call.peer : settings_.address;
  auto address = q.address;
  waiting_.push_back(std::move(q));
  link_to(address);
  answer_waiting(address);
  schedule();
}

void bootstrap_client_state::opened(const control_opened& what) {
  for (auto& [address, l] : links_) {
    if (l.state != link_state::dialling || l.ticket != what.ticket) continue;
    l.state = link_state::open;
    l.connection = what.connection;
    l.has_snapshot = false;
    l.last_failure = {};
    if (address == settings_.address) send_registration(l);
    auto query = std::make_shared<const wire::bytes>(wire::encode(topology_query_message{}));
    tell(broker_, control_send{l.connection, std::move(query)});
  }
  schedule();
}

void bootstrap_client_state::received(const control_received& what) {
  auto i = std::find_if(links_.begin(), links_.end(), [&](const auto& entry) {
    return entry.second.state == link_state::open && entry.second.connection == what.connection;
  });
  if (i == links_.end()) return;
  switch (what.header.type) {
    case message_type::topology_snapshot:
      if (auto snapshot = wire::decode_payload<topology_snapshot_message>(*what.payload)) {
        auto& l = i->second;
        // Versions order within one life of the bootstrap; a new life starts over.
        if (l.has_snapshot && l.snapshot.bootstrap == snapshot->bootstrap &&
            snapshot->version < l.snapshot.version)
          return;
        l.snapshot = std::move(*snapshot);
        l.has_snapshot = true;
        answer_waiting(i->first);
      }
      break;
    case message_type::register_ok:
      if (auto ok = wire::decode_payload<register_ok_message>(*what.payload))
        registered_version_ = ok->version;
      break;
    case message_type::refusal:
      if (auto refusal = wire::decode_payload<refusal_message>(*what.payload)) {
        i->second.last_failure = refusal->reason;
        settings_.log.error("bootstrap-refused", "bootstrap {}: {}", i->first, to_string(refusal->reason));
      }
      break;
    default:
      break;
  }
}

void bootstrap_client_state::closed(const control_closed& what) {
  for (auto& [address, l] : links_) {
    bool ours = (l.state == link_state::dialling && what.ticket == l.ticket) ||
                (l.state == link_state::open && what.connection == l.connection);
    if (!ours) continue;
    if (l.state == link_state::open || !l.last_failure)
      settings_.log.warn("bootstrap-lost", "bootstrap {}: {}", address, to_string(what.reason));
    l.state = link_state::down;
    l.last_failure = what.reason;
    l.retry_at = now_of(self_) + settings_.retry;
  }
  schedule();
}

void bootstrap_client_state::tick() {
  tick_pending_ = false;
  auto now = now_of(self_);
  expire(now);
  for (auto i = links_.begin(); i != links_.end();) {
    auto& [address, l] = *i;
    bool wanted = (registration_ && address == settings_.address) ||
                  std::any_of(waiting_.begin(), waiting_.end(),
                              [&a = address](const question& q) { return q.address == a; });
    if (l.state == link_state::down && !wanted) {
      i = links_.erase(i);
      continue;
    }
    if (l.state == link_state::down && l.retry_at <= now) dial(address, l);
    if (l.state == link_state::open && registration_ && address == settings_.address && renew_at_ <= now)
      send_registration(l);
    ++i;
  }
  schedule();
}

status_part bootstrap_client_state::status() const {
  status_part part{"bootstrap_client", {{"links", links_.size()}, {"waiting", waiting_.size()}}, {}};
  for (const auto& [address, l] : links_)
    part.lines.push_back(fmt::format("bootstrap {}: {}, {} ranks, version {}", address,
                                     l.state == link_state::open ? "open" : "down", l.snapshot.ranks.size(),
                                     l.snapshot.version));
  return part;
}

bootstrap_client_state::link& bootstrap_client_state::link_to(const std::string& address) {
  auto [i, fresh] = links_.try_emplace(address);
  if (fresh) dial(address, i->second);
  return i->second;
}

void bootstrap_client_state::dial(const std::string& address, link& l) {
  l.state = link_state::dialling;
  l.ticket = next_ticket_++;
  tell(broker_, control_dial{l.ticket, address, caf::actor_cast<caf::actor>(self_)});
}

void bootstrap_client_state::send_registration(const link& l) {
  if (!registration_) return;
  renew_at_ = now_of(self_) + settings_.renew;
  tell(broker_,
       control_send{l.connection, std::make_shared<const wire::bytes>(wire::encode(*registration_))});
}

const topology_entry* bootstrap_client_state::find(const link& l, const question& q) const {
  bool by_name = q.call.peer.find(':') == std::string::npos;
  for (const auto& entry : l.snapshot.ranks)
    if (entry.identity.role == q.call.role && entry.identity.rank == q.call.rank &&
        (!by_name || entry.identity.engine == q.call.peer))
      return &entry;
  return nullptr;
}

void bootstrap_client_state::answer_waiting(const std::string& address) {
  auto i = links_.find(address);
  if (i == links_.end() || !i->second.has_snapshot) return;
  std::erase_if(waiting_, [&](const question& q) {
    const auto* entry = q.address == address ? find(i->second, q) : nullptr;
    if (entry) tell(q.call.asker, resolved{q.call.peer, *entry, {}});
    return entry != nullptr;
  });
}

void bootstrap_client_state::expire(time_point now) {
  std::erase_if(waiting_, [&](const question& q) {
    if (q.deadline > now) return false;
    auto i = links_.find(q.address);
    auto why = i == links_.end() || !i->second.has_snapshot
                   ? fmt::format("bootstrap {} is not reachable: {}", q.address,
                                 i == links_.end() ? "no answer" : to_string(i->second.last_failure))
                   : fmt::format("bootstrap {} knows no {} rank {} for \"{}\" ({} ranks registered)",
                                 q.address, to_string(q.call.role), to_string(q.call.rank), q.call.peer,
                                 i->second.snapshot.ranks.size());
    tell(q.call.asker, resolved{q.call.peer, {}, {errc::peer_unknown, std::move(why), {}}});
    return true;
  });
}

void bootstrap_client_state::schedule() {
  if (tick_pending_) return;
  auto next = time_point::max();
  for (const auto& q : waiting_) next = std::min(next, q.deadline);
  for (const auto& [address, l] : links_) {
    if (l.state == link_state::down) next = std::min(next, l.retry_at);
    if (l.state == link_state::open && registration_ && address == settings_.address)
      next = std::min(next, renew_at_);
  }
  if (next == time_point::max()) return;
  tick_pending_ = true;
  // A wait that begins later may be shorter than the one that is pending: never sleep longer than a retry.
  auto delay = std::clamp(next - now_of(self_), duration(0), settings_.retry);
  tell_after(delay, self_, handoff::tick{});
}

bootstrap_client_interface spawn_bootstrap_client(caf::actor_system& system,
                                                  bootstrap_client_settings settings, caf::actor broker) {
  auto behavior = [settings = std::move(settings), broker = std::move(broker)](
                      bootstrap_client_interface::pointer self) -> bootstrap_client_interface::behavior_type {
    auto state = std::make_shared<bootstrap_client_state>(self, settings, broker);
    return {
        [state](const registration& m) { state->enroll(m); },
        [state](const resolve_call& m) { state->resolve(m); },
        [state](const control_opened& m) { state->opened(m); },
        [state](const control_received& m) { state->received(m); },
        [state](const control_closed& m) { state->closed(m); },
        [state](tick) { state->tick(); },
        [state](const status_call&) { return state->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
