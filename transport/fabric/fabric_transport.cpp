#include "transport/fabric/fabric_transport.hpp"

#include "transport/fabric/engine.hpp"
#include "transport/validate.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace handoff::transport::fabric {

namespace {

unexpected closed_transport() {
  return fail(errc::closed, "this transport is closed");
}

class fabric_transport final : public transport {
 public:
  fabric_transport(settings limits, event_sink& sink, std::vector<std::string> offered)
      : limits_(std::move(limits)), output_(sink), offered_(std::move(offered)) {}
  ~fabric_transport() override { close(); }

  std::vector<std::string> providers() const override { return offered_; }

  expected<region_id> register_region(memory_region region) override;
  expected<void> unregister_region(region_id region) override;
  expected<endpoint_record> open_peer(peer_id peer, session_id session, const std::string& provider) override;
  expected<void> connect_peer(peer_id peer, const endpoint_record& remote) override;
  expected<void> submit(transfer t) override;
  expected<void> send_frame(peer_id peer, outgoing_frame frame) override;
  void fence(peer_id peer) override { end_peer(peer, true); }
  void close_peer(peer_id peer) override { end_peer(peer, false); }
  status current_status() const override;
  void close() override;

 private:
  struct open_peer_entry {
    engine* owner = nullptr;
    std::shared_ptr<peer_state> state;
    std::vector<remote_region> remote;
    std::string provider;
  };

  expected<engine*> engine_of(const std::string& provider);
  /// Forgets those whose endpoints are gone.
  void prune();
  expected<open_peer_entry*> ready_peer(peer_id peer);
  void end_peer(peer_id peer, bool fenced);

  settings limits_;
  counters count_;
  event_output output_;
  std::vector<std::string> offered_;
  std::vector<memory_region> regions_;  // unregistered ones stay, empty: ids are not used again
  std::map<std::string, std::unique_ptr<engine>> engines_;
  std::map<peer_id, open_peer_entry> peers_;
  bool closed_ = false;
};

expected<region_id> fabric_transport::register_region(memory_region region) {
  if (closed_) return closed_transport();
  prune();
  if (!peers_.empty())
    return fail(errc::room_state,
                fmt::format("{} peers are open; they would not see the region", peers_.size()));
  if (auto ok = check_region(region); !ok) return tl::unexpected(ok.error());
  if (region.kind != memory_kind::host)
    return fail(errc::transport_region, "shm and tcp reach host memory only; other memory must be staged");
  regions_.push_back(region);
  return region_id{static_cast<std::uint32_t>(regions_.size() - 1)};
}

expected<void> fabric_transport::unregister_region(region_id region) {
  prune();
  if (region.value >= regions_.size() || regions_[region.value].base == nullptr)
    return fail(errc::transport_region, fmt::format("region {} is not registered", region.value));
  if (!peers_.empty())
    return fail(errc::room_state,
                fmt::format("region {}: its keys were shown to {} open peers", region.value, peers_.size()));
  regions_[region.value] = {};
  return {};
}

expected<engine*> fabric_transport::engine_of(const std::string& provider) {
  if (closed_) return closed_transport();
  if (std::find(offered_.begin(), offered_.end(), provider) == offered_.end())
    return fail(errc::transport_provider,
                fmt::format("provider {} is not offered here (offered: {})", provider,
                            offered_.empty() ? "none" : fmt::format("{}", fmt::join(offered_, ", "))));
  auto& e = engines_[provider];
  if (!e) {
    auto started = engine::start(provider, limits_, count_, output_);
    if (!started) return tl::unexpected(started.error());
    e = std::move(*started);
  }
  return e.get();
}

expected<endpoint_record> fabric_transport::open_peer(peer_id peer, session_id session,
                                                      const std::string& provider) {
  prune();
  auto owner = engine_of(provider);
  if (!owner) return tl::unexpected(owner.error());
  if (peers_.contains(peer))
    return fail(errc::invalid_argument, fmt::format("peer {} is open already", peer.value));
  if (peers_.size() >= limits_.peers_max)
    return fail(errc::limit_exceeded,
                fmt::format("{} peers are open, the limit of settings peers_max", peers_.size()));
  auto state = std::make_shared<peer_state>();
  auto record = (*owner)->open(peer, session, state, regions_);
  if (record) peers_[peer] = {*owner, std::move(state), {}, provider};
  return record;
}

expected<void> fabric_transport::connect_peer(peer_id peer, const endpoint_record& remote) {
  if (closed_) return closed_transport();
  prune();
  auto at = peers_.find(peer);
  if (at == peers_.end()) return fail(errc::peer_gone, fmt::format("peer {} is not open", peer.value));
  auto& p = at->second;
  if (auto ok = check_endpoint(remote, p.provider); !ok) return ok;
  p.remote = remote.regions;
  return p.owner->connect(peer, remote);
}

expected<fabric_transport::open_peer_entry*> fabric_transport::ready_peer(peer_id peer) {
  auto at = peers_.find(peer);
  if (at == peers_.end() || !at->second.state->ready)
    return fail(errc::peer_gone, fmt::format("peer {} is not ready", peer.value));
  return &at->second;
}

expected<void> fabric_transport::submit(transfer t) {
  if (closed_) return closed_transport();
  auto p = ready_peer(t.peer);
  if (!p) return tl::unexpected(p.error());
  if (auto ok = check_transfer(t, regions_, (*p)->remote); !ok) return ok;
  if (count_.transfers_active.get() >= limits_.transfers_max)
    return fail(errc::transport_full, fmt::format("{} transfers are unfinished, the limit of settings "
                                                  "transfers_max",
                                                  limits_.transfers_max));
  count_.transfers_active.add();
  (*p)->owner->submit(std::move(t));
  return {};
}

expected<void> fabric_transport::send_frame(peer_id peer, outgoing_frame frame) {
  if (closed_) return closed_transport();
  auto p = ready_peer(peer);
  if (!p) return tl::unexpected(p.error());
  if (auto ok = check_frame(frame); !ok) return ok;
  auto& queued = frame.urgent ? (*p)->state->urgent_queued : (*p)->state->ordinary_queued;
  if (queued >= limits::frame_queue)
    return fail(errc::transport_full,
                fmt::format("peer {}: {} {}frames wait for credits, the limit of limits::frame_queue",
                            peer.value, queued.load(), frame.urgent ? "urgent " : ""));
  ++queued;
  (*p)->owner->send(peer, std::move(frame));
  return {};
}

void fabric_transport::prune() {
  std::erase_if(peers_, [](const auto& entry) { return entry.second.state->closed.load(); });
}

void fabric_transport::end_peer(peer_id peer, bool fenced) {
  prune();
  if (closed_) return;
  if (auto at = peers_.find(peer); at != peers_.end()) {
    at->second.state->ready = false;
    at->second.owner->close(peer, fenced);
    return;
  }
  // Unknown here: any engine can say so, and where none runs there is nothing to wait for.
  if (!engines_.empty()) {
    engines_.begin()->second->close(peer, fenced);
    return;
  }
  std::vector<event> events = {peer_closed{peer, {}, fenced}};
  output_.emit(events);
}

status fabric_transport::current_status() const {
  auto s = count_.read();
  s.regions = static_cast<std::uint64_t>(
      std::count_if(regions_.begin(), regions_.end(), [](const auto& r) { return r.base != nullptr; }));
  return s;
}

void fabric_transport::close() {
  closed_ = true;
  engines_.clear();
  peers_.clear();
}

}  // namespace

std::unique_ptr<transport> make_fabric_transport(settings limits, event_sink& sink,
                                                 std::vector<std::string> allowed,
                                                 const std::function<void(const std::string&)>& log) {
  if (limits.host_id.empty()) limits.host_id = local_host_id();
  auto offered = available_providers(allowed, limits.bind_address, log);
  return std::make_unique<fabric_transport>(std::move(limits), sink, std::move(offered));
}

}  // namespace handoff::transport::fabric
