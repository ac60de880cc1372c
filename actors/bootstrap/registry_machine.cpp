#include "actors/bootstrap/registry_machine.hpp"

#include "messages/wire.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace handoff {
namespace {

std::string text(const rank_topology& t) {
  return fmt::format("dp{} pp{} cp{} tp{}", t.dp, t.pp, t.cp, t.tp);
}

std::string text(const engine_identity& e) {
  return fmt::format("engine {} {}", e.engine, to_string(e.rank));
}

bool inside(const rank_coord& r, const rank_topology& t) {
  return r.dp < t.dp && r.pp < t.pp && r.cp < t.cp && r.tp < t.tp;
}

std::size_t bytes_in_snapshot(const topology_entry& entry) {
  wire::bytes bytes;
  wire::encode_payload(topology_snapshot_message{{}, 0, {entry}}, bytes);
  return bytes.size();
}

error refuse(errc code, std::string detail) {
  return {code, std::move(detail), {}};
}

}  // namespace

registry_machine::registry_machine(const registry_context& context) : context_(context) {}

expected<register_ok_message> registry_machine::register_rank(const register_rank_message& message,
                                                              time_point now, registry_effects& out) {
  note(message.self, "register");
  if (auto e = check(message)) return unexpected(std::move(e));
  rank_key key{message.self.engine, message.self.rank};
  auto lease = std::min<duration>(std::chrono::milliseconds(message.lease_ms), context_.lease_max);
  topology_entry shown{message.self, message.topology, message.control_address, message.draining};
  auto found = ranks_.find(key);
  if (found != ranks_.end() && found->second.shown == shown) {
    found->second.lease_end = now + lease;
    return register_ok_message{context_.incarnation, version_};
  }
  const auto bytes = bytes_in_snapshot(shown);
  const auto others = list_bytes_ - (found == ranks_.end() ? 0 : found->second.bytes);
  if (others + bytes > context_.list_bytes_max)
    return unexpected(refuse(
        errc::limit_exceeded,
        fmt::format("{}: the list of {} ranks would be larger than {} bytes, one message", text(message.self),
                    ranks_.size() + (found == ranks_.end() ? 1 : 0), context_.list_bytes_max)));
  list_bytes_ = others + bytes;
  auto& e = ranks_[key];
  if (found != ranks_.end() && e.shown.identity.incarnation != shown.identity.incarnation)
    e.replaced = e.shown.identity.incarnation;
  e.shown = std::move(shown);
  e.lease_end = now + lease;
  e.bytes = bytes;
  changed(key.first, out);
  return register_ok_message{context_.incarnation, version_};
}

void registry_machine::note(const engine_identity& rank, std::string_view event) const {
  if (!context_.events) return;
  const auto found = ranks_.find({rank.engine, rank.rank});
  const auto state = found == ranks_.end()                                          ? "absent"
                     : found->second.shown.identity.incarnation == rank.incarnation ? "registered"
                     : found->second.replaced == rank.incarnation                   ? "replaced"
                                                                                    : "other_life";
  context_.events(state, event);
}

error registry_machine::check(const register_rank_message& m) const {
  const auto& self = m.self;
  if (self.engine.empty() || m.control_address.empty() || m.lease_ms == 0)
    return refuse(
        errc::invalid_argument,
        fmt::format("{}: a registration needs an engine name, a control address and a lease", text(self)));
  if (self.engine.size() > limits::engine_name_bytes || m.control_address.size() > limits::address_bytes)
    return refuse(
        errc::invalid_argument,
        fmt::format("an engine name of {} bytes and a control address of {} bytes: {} and {} are the most",
                    self.engine.size(), m.control_address.size(), limits::engine_name_bytes,
                    limits::address_bytes));
  if (!inside(self.rank, m.topology))
    return refuse(errc::invalid_argument,
                  fmt::format("{} lies outside of its own topology {}", text(self), text(m.topology)));
  auto own = ranks_.find({self.engine, self.rank});
  if (own != ranks_.end() && own->second.replaced == self.incarnation)
    return refuse(errc::peer_gone,
                  fmt::format("{}: incarnation {:016x} was replaced by {:016x}", text(self),
                              self.incarnation.value, own->second.shown.identity.incarnation.value));
  if (own == ranks_.end() && ranks_.size() >= context_.ranks_max)
    return refuse(errc::limit_exceeded,
                  fmt::format("{}: {} ranks are registered already", text(self), context_.ranks_max));
  // One other rank speaks for all of them: they agreed when they came.
  auto first = ranks_.lower_bound({self.engine, rank_coord{}});
  while (first != ranks_.end() && first->first.first == self.engine && first == own) ++first;
  if (first == ranks_.end() || first->first.first != self.engine) return {};
  const auto& other = first->second.shown;
  if (other.topology != m.topology)
    return refuse(errc::peer_incompatible,
                  fmt::format("{} registers with topology {}, but {} with {}; one of them is from another "
                              "start of the engine, whose lease must end first",
                              text(self), text(m.topology), text(other.identity), text(other.topology)));
  if (other.identity.role != self.role)
    return refuse(errc::peer_incompatible,
                  fmt::format("{} registers as {}, but {} as {}", text(self), to_string(self.role),
                              text(other.identity), to_string(other.identity.role)));
  return {};
}

void registry_machine::unregister_rank(const engine_identity& identity, registry_effects& out) {
  note(identity, "unregister");
  auto found = ranks_.find({identity.engine, identity.rank});
  if (found == ranks_.end() || found->second.shown.identity.incarnation != identity.incarnation) return;
  list_bytes_ -= found->second.bytes;
  ranks_.erase(found);
  changed(identity.engine, out);
}

error registry_machine::subscribe(subscriber_id subscriber, std::string engine, registry_effects& out) {
  if (!subscribers_.count(subscriber) && subscribers_.size() >= context_.subscribers_max)
    return refuse(errc::limit_exceeded,
                  fmt::format("{} subscribers watch the registry already", context_.subscribers_max));
  out.push_back({subscriber, snapshot(engine)});
  subscribers_[subscriber] = std::move(engine);
  return {};
}

void registry_machine::unsubscribe(subscriber_id subscriber) {
  subscribers_.erase(subscriber);
}

void registry_machine::tick(time_point now, registry_effects& out) {
  std::set<std::string> engines;
  for (auto i = ranks_.begin(); i != ranks_.end();) {
    if (i->second.lease_end > now) {
      ++i;
      continue;
    }
    note(i->second.shown.identity, "expire");
    list_bytes_ -= i->second.bytes;
    engines.insert(i->first.first);
    i = ranks_.erase(i);
  }
  for (const auto& engine : engines) changed(engine, out);
}

time_point registry_machine::deadline() const {
  auto at = time_point::max();
  for (const auto& [key, e] : ranks_) at = std::min(at, e.lease_end);
  return at;
}

void registry_machine::changed(const std::string& engine, registry_effects& out) {
  ++version_;
  for (const auto& [subscriber, wanted] : subscribers_)
    if (wanted.empty() || wanted == engine) out.push_back({subscriber, snapshot(wanted)});
}

topology_snapshot_message registry_machine::snapshot(const std::string& engine) const {
  topology_snapshot_message out{context_.incarnation, version_, {}};
  for (const auto& [key, e] : ranks_)
    if (engine.empty() || key.first == engine) out.ranks.push_back(e.shown);
  return out;
}

expected<std::uint16_t> registry_machine::dp_rank_of(room_id room, const std::string& engine) const {
  auto first = ranks_.lower_bound({engine, rank_coord{}});
  if (first == ranks_.end() || first->first.first != engine)
    return fail(errc::peer_unknown, fmt::format("no rank of engine {} is registered", engine));
  return static_cast<std::uint16_t>(room.value % first->second.shown.topology.dp);
}

}  // namespace handoff
