// One room on its sink rank: from the engine's announce until its pages are free of writers. Pure.
//
//   resolving   the peer is being found and connected                        (bootstrapping)
//   announced   the source was told; the engine may allocate and publish     (waiting_for_input)
//   published   destinations are exposed; writes may land at any time        (transferring)
//   succeeded   coverage, plan and stamp were proven                         (success)
//   failed      ended; the lease is quarantined until writers drained or were fenced   (failed)
#pragma once

#include "actors/room/state_clock.hpp"
#include "transport/layout/plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

enum class receiver_state : std::uint8_t { resolving, announced, published, succeeded, failed };
inline constexpr std::size_t receiver_state_count = 5;
std::string_view to_string(receiver_state state);

struct receiver_context {
  std::shared_ptr<const layout_descriptor> layout;  ///< ours
  rank_coord rank;
  std::string origin;
  duration bootstrap_timeout{};   ///< the peer is being found and connected
  duration waiting_timeout{};     ///< announced, the engine has not published
  duration transfer_timeout{};    ///< published, `room_done` has not come
  duration quarantine_timeout{};  ///< ended, the source has not drained: then it is fenced
  std::uint16_t sink_ranks = 1;   ///< sink ranks that publish to the source rank
  transition_log log;
  event_log events{};
  duration announce_interval{};  ///< announced: how often the source's lease is renewed; 0: never
};

/// What the actor read from the metadata slot when `room_done` came.
using row_reading = expected<metadata_row>;

class receiver_machine {
 public:
  receiver_machine(room_key key, const receiver_context& context, std::string label, time_point now);

  // events of the engine
  void announce(time_point now, room_effects& out);
  /// The actor has reserved the lease and a metadata slot. Of a failed room both are given back by
  /// `lease_effect{released}` and `free_slot_effect`; of one that succeeded the slot stays the engine's until
  /// it took the row. room_state, invalid_argument, coverage_gap, transport_region, limit_exceeded: nothing
  /// changed.
  error publish(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot, time_point now,
                room_effects& out);
  void abort(error reason, time_point now, room_effects& out);

  // events of peers
  void peer_found(const peer_view& peer, time_point now, room_effects& out);
  void peer_unavailable(const error& reason, time_point now, room_effects& out);
  void done(const peer_view& from, const room_done_message& message, const row_reading& row, time_point now,
            room_effects& out);
  /// Tokens that have arrived; more than was published fails the room.
  void progress(const peer_view& from, const progress_message& message, time_point now, room_effects& out);
  void peer_abort(const peer_view& from, const abort_message& message, time_point now, room_effects& out);
  void drained(const peer_view& from, const drained_message& message, time_point now, room_effects& out);
  void peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out);
  /// After a fence (or any end of the endpoint here): no byte of this peer can land any more.
  void peer_closed(peer_id peer, time_point now, room_effects& out);
  void tick(time_point now, room_effects& out);

  room_key key() const { return key_; }
  receiver_state state() const { return clock_.state(); }
  kv_poll poll() const;
  const error& reason() const { return reason_; }
  const std::string& label() const { return label_; }
  std::optional<slot_id> slot() const { return slot_; }
  bool finished() const;
  time_point deadline() const;
  waiting_on waits() const;
  duration time_in(receiver_state state, time_point now) const { return clock_.time_in(state, now); }

 private:
  void note(std::string_view event) const {
    if (context_->events) context_->events(to_string(state()), event);
  }
  void move(receiver_state to, time_point now);
  void check_announced(time_point now, room_effects& out);
  error prove(const room_done_message& message, const row_reading& row) const;
  void fail(error reason, bool tell, time_point now, room_effects& out);
  void fence(time_point now, room_effects& out);
  void release(room_effects& out);
  void send_announce(time_point now, room_effects& out);
  void send_result(room_effects& out);
  bool from_peer(const peer_view& from, room_key key) const;
  bool terminal() const { return state() == receiver_state::succeeded || state() == receiver_state::failed; }

  room_key key_;
  const receiver_context* context_;
  state_clock<receiver_state, receiver_state_count> clock_;
  error reason_;
  std::string label_;
  bool wanted_ = false;  ///< the engine announced
  std::optional<peer_view> peer_;
  std::optional<slot_id> slot_;
  std::uint64_t tokens_ = 0;
  proven_by_component proven_{};
  layout::totals owed_;  ///< our own plan of the room
  bool released_ = false;
  time_point fence_at_, renew_at_;
};

}  // namespace handoff
