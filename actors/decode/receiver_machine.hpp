// One room on its sink rank: from the engine's announce until its pages are free of writers. Pure.
//
//   resolving   the peer is being found and connected                        (bootstrapping)
//   announced   the source was told; the engine may allocate and publish     (waiting_for_input)
//   published   destinations are exposed; writes may land at any time        (transferring)
//   succeeded   coverage, plan and stamp were proven                         (success)
//   failed      ended; the lease is quarantined until writers drained or were fenced   (failed)
#pragma once

#include "actors/room/room_effects.hpp"
#include "transport/layout/plan.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace handoff {

enum class receiver_state : std::uint8_t { resolving, announced, published, succeeded, failed };
inline constexpr std::size_t receiver_state_count = 5;
std::string_view to_string(receiver_state state);

struct receiver_context {
  std::shared_ptr<const layout_descriptor> layout;  ///< ours
  rank_coord rank;
  std::string origin;
  duration bootstrap_timeout, waiting_timeout, transfer_timeout, quarantine_timeout;
};

/// What the actor read from the metadata slot when `room_done` came.
using row_reading = expected<metadata_row>;

class receiver_machine {
 public:
  receiver_machine(room_key key, const receiver_context& context, std::string label, time_point now);

  // events of the engine
  void announce(time_point now, room_effects& out);
  /// The actor has reserved the lease and a metadata slot. room_state, invalid_argument: nothing changed.
  error publish(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot, time_point now,
                room_effects& out);
  void abort(error reason, time_point now, room_effects& out);

  // events of peers
  void peer_found(const peer_view& peer, time_point now, room_effects& out);
  void peer_unavailable(const error& reason, time_point now, room_effects& out);
  void done(const peer_view& from, const room_done_message& message, const row_reading& row, time_point now,
            room_effects& out);
  void peer_abort(const peer_view& from, const abort_message& message, time_point now, room_effects& out);
  void drained(const peer_view& from, const drained_message& message, time_point now, room_effects& out);
  void peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out);
  /// After a fence (or any end of the endpoint here): no byte of this peer can land any more.
  void peer_closed(peer_id peer, time_point now, room_effects& out);
  void tick(time_point now, room_effects& out);

  room_key key() const { return key_; }
  receiver_state state() const { return state_; }
  kv_poll poll() const;
  const error& reason() const { return reason_; }
  const std::string& label() const { return label_; }
  std::optional<slot_id> slot() const { return slot_; }
  bool finished() const;
  time_point deadline() const;
  waiting_on waits() const;
  duration time_in(receiver_state state, time_point now) const;
};

}  // namespace handoff
