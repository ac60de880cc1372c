#include "actors/bootstrap/directory.hpp"

#include "actors/room/reasons.hpp"

#include <algorithm>

namespace handoff {
namespace {

/// Refusals of a bootstrap that asking again does not mend.
bool is_final(errc code) {
  return code == errc::wire_version || code == errc::wire_unsupported || code == errc::peer_unauthorized;
}

}  // namespace

void directory::on(const registration& what) {
  registration_ = what.what;
  auto& l = link_to(settings_.address);
  if (l.state == link_state::open) send_registration(l);
}

void directory::on(const no_new_rooms&) {
  if (!registration_) return;
  registration_->draining = true;
  if (const auto* l = own_link()) send_registration(*l);
}

void directory::leave() {
  const auto* l = own_link();
  if (l && registration_)
    control_.send({l->connection, std::make_shared<const wire::bytes>(
                                      wire::encode(unregister_rank_message{registration_->self}))});
  registration_.reset();
}

const directory::link* directory::own_link() const {
  auto i = links_.find(settings_.address);
  return i != links_.end() && i->second.state == link_state::open ? &i->second : nullptr;
}

void directory::resolve(std::uint64_t number, const std::string& peer, rank_coord rank, engine_role role,
                        time_point now) {
  now_ = now;
  bool is_address = peer.find(':') != std::string::npos;
  auto address = is_address ? peer : settings_.address;
  waiting_.push_back({number, peer, rank, role, address, now + settings_.resolve_timeout});
  link_to(address);
  answer_waiting(address);
}

void directory::on(const control_opened& what) {
  for (auto& [address, l] : links_) {
    if (l.state != link_state::dialling || l.ticket != what.ticket) continue;
    l.state = link_state::open;
    l.connection = what.connection;
    l.has_snapshot = false;
    l.last_failure = {};
    if (address == settings_.address) send_registration(l);
    auto query = std::make_shared<const wire::bytes>(wire::encode(topology_query_message{}));
    control_.send({l.connection, std::move(query)});
  }
}

void directory::on(const control_received& what) {
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

void directory::on(const control_closed& what) {
  for (auto& [address, l] : links_) {
    bool ours = (l.state == link_state::dialling && what.ticket == l.ticket) ||
                (l.state == link_state::open && what.connection == l.connection);
    if (!ours) continue;
    if (l.state == link_state::open || !l.last_failure)
      settings_.log.warn("bootstrap-lost", "bootstrap {}: {}", address, to_string(what.reason));
    l.state = link_state::down;
    l.has_snapshot = false;
    l.last_failure = what.reason;
    if (is_final(what.reason.code)) give_up(address, what.reason);
    l.retry_at = now_ + settings_.retry;
  }
}

void directory::tick(time_point now) {
  now_ = now;
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
}

status_part directory::status() const {
  status_part part{"bootstrap_client", {{"links", links_.size()}, {"waiting", waiting_.size()}}, {}};
  for (const auto& [address, l] : links_)
    part.lines.push_back(fmt::format("bootstrap {}: {}, {} ranks, version {}", address,
                                     l.state == link_state::open ? "open" : "down", l.snapshot.ranks.size(),
                                     l.snapshot.version));
  return part;
}

directory::link& directory::link_to(const std::string& address) {
  auto [i, fresh] = links_.try_emplace(address);
  if (fresh) dial(address, i->second);
  return i->second;
}

void directory::dial(const std::string& address, link& l) {
  l.state = link_state::dialling;
  l.ticket = next_ticket_++;
  control_.dial(l.ticket, address);
}

void directory::send_registration(const link& l) {
  if (!registration_) return;
  renew_at_ = now_ + settings_.renew;
  control_.send({l.connection, std::make_shared<const wire::bytes>(wire::encode(*registration_))});
}

const topology_entry* directory::find(const link& l, const question& q) const {
  bool by_name = q.peer.find(':') == std::string::npos;
  const topology_entry* leaving = nullptr;
  for (const auto& entry : l.snapshot.ranks) {
    if (entry.identity.role != q.role || entry.identity.rank != q.rank ||
        (by_name && entry.identity.engine != q.peer))
      continue;
    if (!entry.draining) return &entry;
    leaving = &entry;
  }
  return leaving;
}

void directory::answer_waiting(const std::string& address) {
  auto i = links_.find(address);
  // What a bootstrap said before it went away may be long wrong.
  if (i == links_.end() || i->second.state != link_state::open || !i->second.has_snapshot) return;
  std::erase_if(waiting_, [&](const question& q) {
    const auto* entry = q.address == address ? find(i->second, q) : nullptr;
    if (!entry) return false;
    const auto& who = entry->identity;
    auto refusal =
        entry->draining ? draining(fmt::format("{} {}", who.engine, to_string(who.rank))) : error{};
    answers_.push_back({q.number, {q.peer, *entry, std::move(refusal)}});
    return true;
  });
}

void directory::give_up(const std::string& address, const error& reason) {
  std::erase_if(waiting_, [&](const question& q) {
    if (q.address != address) return false;
    answers_.push_back({q.number, {q.peer, {}, reason}});
    return true;
  });
}

void directory::expire(time_point now) {
  std::erase_if(waiting_, [&](const question& q) {
    if (q.deadline > now) return false;
    auto i = links_.find(q.address);
    auto why =
        i == links_.end() || !i->second.has_snapshot
            ? fmt::format("bootstrap {} is not reachable: {}", q.address,
                          i == links_.end() ? "no answer" : to_string(i->second.last_failure))
            : fmt::format("bootstrap {} knows no {} rank {} for \"{}\" ({} ranks registered)", q.address,
                          to_string(q.role), to_string(q.rank), q.peer, i->second.snapshot.ranks.size());
    answers_.push_back({q.number, {q.peer, {}, {errc::peer_unknown, std::move(why), {}}}});
    return true;
  });
}

time_point directory::deadline() const {
  auto next = time_point::max();
  for (const auto& q : waiting_) next = std::min(next, q.deadline);
  for (const auto& [address, l] : links_) {
    if (l.state == link_state::down) next = std::min(next, l.retry_at);
    if (l.state == link_state::open && registration_ && address == settings_.address)
      next = std::min(next, renew_at_);
  }
  return next;
}

}  // namespace handoff
