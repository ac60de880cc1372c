#include "transport/sim/sim_transport.hpp"

#include "transport/validate.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::transport {

namespace {

unexpected closed_transport() {
  return fail(errc::closed, "this transport is closed");
}

}  // namespace

sim_transport::sim_transport(sim_wire& wire, std::size_t process, settings limits, event_sink& sink)
    : wire_(wire), process_(process), limits_(std::move(limits)), sink_(sink) {}

sim_transport::~sim_transport() {
  close();
}

// -- memory ----------------------------------------------------------------------------------------

expected<region_id> sim_transport::register_region(memory_region region) {
  if (closed_) return closed_transport();
  if (!peers_.empty())
    return fail(errc::room_state, "regions are registered before the first peer is opened");
  if (auto ok = check_region(region); !ok) return unexpected(ok.error());
  regions_.push_back(region);
  return region_id{static_cast<std::uint32_t>(regions_.size() - 1)};
}

expected<void> sim_transport::unregister_region(region_id region) {
  if (region.value >= regions_.size() || regions_[region.value].base == nullptr)
    return fail(errc::transport_region, fmt::format("region {} is not registered", region.value));
  if (!peers_.empty())
    return fail(errc::room_state, fmt::format("region {} was shown to {} peers that are still open",
                                              region.value, peers_.size()));
  regions_[region.value] = {nullptr, 0, memory_kind::host, false};
  return {};
}

// -- peers -----------------------------------------------------------------------------------------

expected<endpoint_record> sim_transport::open_peer(peer_id peer, session_id session,
                                                   const std::string& provider) {
  if (closed_) return closed_transport();
  if (provider != "sim")
    return fail(errc::transport_provider, fmt::format("provider {} is not one of: sim", provider));
  if (peers_.contains(peer))
    return fail(errc::invalid_argument, fmt::format("peer {} is open already", peer.value));
  if (peers_.size() >= limits_.peers_max)
    return fail(errc::limit_exceeded,
                fmt::format("{} peers are open, the limit of peers_max", peers_.size()));
  auto opened = std::make_unique<sim_peer>(*this, peer, session);
  return peers_.emplace(peer, std::move(opened)).first->second->record();
}

expected<void> sim_transport::connect_peer(peer_id peer, const endpoint_record& remote) {
  if (closed_) return closed_transport();
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return fail(errc::peer_gone, fmt::format("peer {} is not open", peer.value));
  if (auto ok = check_endpoint(remote, "sim"); !ok) return ok;
  return found->second->connect(remote);
}

expected<void> sim_transport::submit(transfer t) {
  if (closed_) return closed_transport();
  const auto found = peers_.find(t.peer);
  if (found == peers_.end()) return fail(errc::peer_gone, fmt::format("peer {} is not open", t.peer.value));
  const auto active = current_status().transfers_active;
  if (active >= limits_.transfers_max)
    return fail(errc::transport_full,
                fmt::format("{} transfers are unfinished, the limit of transfers_max", active));
  return found->second->submit(std::move(t));
}

expected<void> sim_transport::send_frame(peer_id peer, outgoing_frame frame) {
  if (closed_) return closed_transport();
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return fail(errc::peer_gone, fmt::format("peer {} is not open", peer.value));
  return found->second->send(std::move(frame));
}

void sim_transport::end_peer(peer_id peer, bool fenced) {
  if (closed_) return;
  const auto found = peers_.find(peer);
  session_id session;
  if (found != peers_.end()) {
    session = found->second->session();
    found->second->end(fenced ? error{errc::transport_fenced, "the peer was fenced here", {}}
                              : error{errc::peer_gone, "the peer was closed here", {}});
    peers_.erase(found);
  }
  emit(peer_closed{peer, session, fenced});
}

void sim_transport::close() {
  if (std::exchange(closed_, true)) return;
  for (auto& [id, peer] : peers_) peer->end({errc::closed, "the transport was closed", {}});
  peers_.clear();
  outbox_.clear();
}

// -- events and status -----------------------------------------------------------------------------

void sim_transport::emit(event e) {
  if (outbox_.empty()) wire_.at(wire_.now(), process_, [this] { deliver(); });
  outbox_.push_back(std::move(e));
}

void sim_transport::deliver() {
  std::vector<event> events = std::exchange(outbox_, {});
  if (!events.empty()) sink_.on_events(events);
}

status sim_transport::current_status() const {
  status s = totals;
  s.regions = static_cast<std::uint64_t>(
      std::count_if(regions_.begin(), regions_.end(), [](const auto& r) { return r.base != nullptr; }));
  s.peers = peers_.size();
  for (const auto& [id, peer] : peers_) peer->add_to(s);
  return s;
}

}  // namespace handoff::transport
