// One simulated process: the transport interface over sim_wire. See sim_world.hpp.
#pragma once

#include "transport/sim/sim_peer.hpp"

#include <map>

namespace handoff::transport {

class sim_transport final : public transport {
 public:
  sim_transport(sim_wire& wire, std::size_t process, settings limits, event_sink& sink);
  ~sim_transport() override;

  std::vector<std::string> providers() const override { return {"sim"}; }
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

  // -- for its peers

  sim_wire& wire() { return wire_; }
  std::size_t process() const { return process_; }
  const settings& limits() const { return limits_; }
  const std::vector<memory_region>& regions() const { return regions_; }
  /// Queues an event; the sink gets it from the next step of the world.
  void emit(event e);
  status totals;  ///< only what is counted over the transport's life

 private:
  void end_peer(peer_id peer, bool fenced);
  void deliver();

  sim_wire& wire_;
  std::size_t process_;
  settings limits_;
  event_sink& sink_;
  bool closed_ = false;
  std::vector<memory_region> regions_;
  std::map<peer_id, std::unique_ptr<sim_peer>> peers_;
  std::vector<event> outbox_;
};

}  // namespace handoff::transport
