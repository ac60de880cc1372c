// One room on its source rank: from the first sign of it (an offer of the engine, or an announce or publish
// of a sink) until its pages are free again. Pure: the actor feeds events and carries out effects.
//
//   unclaimed   a sink announced or published before the engine offered; bounded
//   offered     the engine offered; not every announced sink rank has published          (bootstrapping)
//   ready       every sink rank's destinations are known                                  (waiting_for_input)
//   sending     at least one chunk was posted                                             (transferring)
//   confirming  everything and `room_done` is out; every sink rank's verdict is awaited   (transferring)
//   succeeded   every sink rank confirmed                                                 (success)
//   failed      ended; writes still drain, then the lease is released                     (failed)
#pragma once

#include "actors/room/room_effects.hpp"
#include "transport/layout/plan.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace handoff {

enum class sender_state : std::uint8_t { unclaimed, offered, ready, sending, confirming, succeeded, failed };
inline constexpr std::size_t sender_state_count = 7;
std::string_view to_string(sender_state state);

/// What all rooms of a rank share; outlives the machines.
struct sender_context {
  std::shared_ptr<const layout_descriptor> layout;  ///< ours
  region_id metadata_region;                        ///< ours, holds the private rows
  rank_coord rank;
  std::string origin;                      ///< "prefill-0 dp0 pp0 cp0 tp0": stands in errors first seen here
  std::uint64_t* next_transfer = nullptr;  ///< ids of transfers, shared by all rooms of the runtime
  duration unclaimed_timeout, bootstrap_timeout, send_timeout, result_timeout, transfer_timeout,
      quarantine_timeout;
};

class sender_machine {
 public:
  sender_machine(room_key key, const sender_context& context, time_point now);

  // events of the engine
  /// The actor has reserved the lease and a private slot.
  void offer(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot, duration lease,
             std::string label, time_point now, room_effects& out);
  /// Chunks wait for their destinations when these are not published yet. invalid_argument, room_state:
  /// nothing changed.
  error send(layout::range what, bool last, std::optional<metadata_row> row, time_point now,
             room_effects& out);
  void abort(error reason, time_point now, room_effects& out);

  // events of peers
  void announce(const peer_view& from, const announce_message& message, time_point now, room_effects& out);
  void publish(const peer_view& from, const publish_message& message, time_point now, room_effects& out);
  void result(const peer_view& from, const room_result_message& message, time_point now, room_effects& out);
  void peer_abort(const peer_view& from, const abort_message& message, time_point now, room_effects& out);
  void peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out);
  /// The endpoint of this peer is gone: no operation of ours is in the provider any more.
  void peer_closed(peer_id peer, time_point now, room_effects& out);

  // events of the transport and the clock
  void transfer_done(const transport::transfer_done& done, time_point now, room_effects& out);
  void tick(time_point now, room_effects& out);

  room_key key() const { return key_; }
  sender_state state() const { return state_; }
  kv_poll poll() const;
  const error& reason() const { return reason_; }
  const std::string& label() const { return label_; }
  /// Everything is settled: terminal and released. The actor keeps a tombstone and drops the machine.
  bool finished() const;
  /// When `tick` must be called next; max() if never.
  time_point deadline() const;
  waiting_on waits() const;
  duration time_in(sender_state state, time_point now) const;
};

}  // namespace handoff
