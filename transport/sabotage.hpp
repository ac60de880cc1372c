// A transport around another one that does harm once: the oracles of the replay must see it.
#pragma once

#include "transport/sabotage_kind.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace handoff::transport {

/// Passes everything through, except for one transfer (swap_rooms: two) that carries what the kind harms,
/// chosen by `seed`. Its `transfer_done` counts what was really written. Kinds that do not concern the
/// transport (none, leak_lease) pass everything.
class sabotage_transport final : public transport {
 public:
  /// Transfers with something to harm that pass before: not the first room, which warms up connections.
  static constexpr std::uint32_t passed_min = 3, passed_max = 8;

  sabotage_transport(std::unique_ptr<transport> inner, sabotage_kind kind, std::uint64_t seed);

  std::vector<std::string> providers() const override;
  expected<region_id> register_region(memory_region region) override;
  expected<void> unregister_region(region_id region) override;
  expected<endpoint_record> open_peer(peer_id peer, session_id session, const std::string& provider) override;
  expected<void> connect_peer(peer_id peer, const endpoint_record& remote) override;
  expected<void> submit(transfer t) override;
  expected<void> send_frame(peer_id peer, outgoing_frame frame) override;
  void fence(peer_id peer) override;
  void close_peer(peer_id peer) override;
  status current_status() const override;
  void close() override;

 private:
  bool can_harm(const transfer& t) const;
  expected<void> harm(transfer t);
  expected<void> swap_with_held(transfer t);
  bool flip_byte(transfer& t) const;
  void submit_held();

  std::unique_ptr<transport> inner_;
  sabotage_kind kind_;
  std::uint32_t to_pass_;
  bool done_ = false;
  std::optional<transfer> held_;  ///< swap_rooms: waits for its counterpart
  std::vector<memory_region> regions_;
};

}  // namespace handoff::transport
