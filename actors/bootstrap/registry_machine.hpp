// The registry of engines: which ranks live where. Registrations are leases; whoever does not renew is
// forgotten, and subscribers are sent a new snapshot whenever what they asked for changes. Pure.
//
// Versions order the snapshots of one incarnation of the registry; a registry that died and came back starts
// with an empty one, ranks register again by themselves.
#pragma once

#include "actors/room/room_effects.hpp"
#include "actors/room/state_clock.hpp"
#include "messages/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace handoff {

struct registry_context {
  incarnation_id incarnation;  ///< of the registry itself
  std::size_t ranks_max = 4096;
  std::size_t subscribers_max = 4096;
  duration lease_max = std::chrono::minutes(10);
  std::size_t list_bytes_max =
      limits::control_message_bytes - 1024;  ///< of all ranks: a snapshot is one message
  event_log events{};  ///< states of a rank: absent, registered, other_life (another is registered), replaced
};

/// Chosen by the owner of the connection.
using subscriber_id = strong_id<struct subscriber_tag, std::uint64_t>;

struct snapshot_effect {
  subscriber_id subscriber;
  topology_snapshot_message snapshot;
};
using registry_effects = std::vector<snapshot_effect>;

class registry_machine {
 public:
  explicit registry_machine(const registry_context& context);

  /// Registers or renews. Refusals: invalid_argument (a rank outside of its topology, no lease, no address),
  /// peer_incompatible (topology or role of the engine's other ranks differs, both named), peer_gone (this
  /// incarnation was replaced), limit_exceeded.
  expected<register_ok_message> register_rank(const register_rank_message& message, time_point now,
                                              registry_effects& out);
  /// Only the incarnation that is registered; anything else changes nothing.
  void unregister_rank(const engine_identity& identity, registry_effects& out);

  /// Sends a snapshot at once and then on every change. `engine` empty: all. Subscribing again replaces.
  error subscribe(subscriber_id subscriber, std::string engine, registry_effects& out);
  void unsubscribe(subscriber_id subscriber);

  /// Forgets whose lease has ended.
  void tick(time_point now, registry_effects& out);
  time_point deadline() const;

  topology_snapshot_message snapshot(const std::string& engine) const;
  /// Which dp rank of an engine serves a room: room mod dp, on every side alike. peer_unknown.
  expected<std::uint16_t> dp_rank_of(room_id room, const std::string& engine) const;
  std::uint64_t version() const { return version_; }
  std::size_t ranks() const { return ranks_.size(); }
  std::size_t subscribers() const { return subscribers_.size(); }

 private:
  using rank_key = std::pair<std::string, rank_coord>;
  struct entry {
    topology_entry shown;
    time_point lease_end;
    std::size_t bytes = 0;                   ///< in a snapshot
    std::optional<incarnation_id> replaced;  ///< the life before this one
  };

  void note(const engine_identity& rank, std::string_view event) const;
  error check(const register_rank_message& message) const;
  void changed(const std::string& engine, registry_effects& out);

  registry_context context_;
  std::uint64_t version_ = 0;
  std::map<rank_key, entry> ranks_;
  std::size_t list_bytes_ = 0;
  std::map<subscriber_id, std::string> subscribers_;
};

}  // namespace handoff
