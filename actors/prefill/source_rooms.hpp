// Source side of one engine rank: its rooms, their leases, slots, tombstones and deadlines. Turns calls,
// frames and ends of transfers into events of the rooms' sender machines and carries out their effects. Pure:
// what it asks of others goes through `fabric_port`, what the engine hears through the desk's `event_port`.
#pragma once

#include "actors/prefill/sender_machine.hpp"
#include "actors/room/rooms_base.hpp"

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace handoff {

struct source_rooms_settings {
  sender_context rooms;
  room_desk_settings desk;
  failure_injector failures;
};

struct source_room {
  sender_machine machine;
  std::optional<lease_id> lease;
  std::optional<slot_id> slot;
  room_key key;                         ///< as the lease and slot are named; follows the machine's attempt
  bool offered = false;                 ///< the engine knows of it
  std::vector<room_frame> parked = {};  ///< of the next attempt, which opens when this one is over
};

class source_rooms final : public rooms_base<source_room> {
 public:
  source_rooms(source_rooms_settings settings, fabric_port& engine);

  /// One call of the engine (offer_call, send_call, abort_call) or one word of the transfer engine.
  template <class Event>
  void handle(Event& event, time_point now) {
    now_ = now;
    on(event);
  }
  status_part status() const;

 private:
  void on(offer_call& call);
  void on(const send_call& call);
  void on(const abort_call& call);
  void on(const no_new_rooms&);
  void on(const room_frame& frame);
  void on(const transfer_ended& ended);
  void on(const peer_up& peer);
  void on(const connect_failed&) {}
  void on(const peer_down& peer);
  void on(const peer_endpoint_closed& peer);

  void on(const room_frame& from, const announce_message& m);
  void on(const room_frame& from, const publish_message& m);
  void on(const room_frame& from, const room_result_message& m);
  void on(const room_frame& from, const abort_message& m);
  void on(const room_frame&, const room_done_message&) {}
  void on(const room_frame&, const progress_message&) {}
  void on(const room_frame&, const drained_message&) {}
  /// The room that a message is about; answers for ended rooms and makes unclaimed ones.
  source_room* room_for(const peer_view& from, room_key key, rank_coord source, rank_coord sink,
                        bool may_open);
  void park(room_key key, const room_frame& frame);
  error no_room() const;
  source_room& open(room_key key);

  void follow(source_room& r) override;
  void carry_out(source_room& r, room_effect& effect) override;
  void buried(source_room r) override;
  bool unclaimed(const source_room& r) const override { return !r.offered; }

  sender_context context_;
  struct in_flight {
    room_id room;
    peer_id peer;
  };
  std::unordered_map<transfer_id, in_flight> transfers_;  ///< until drained, or the peer's endpoint is closed
  std::set<peer_id> peers_;
  std::uint64_t next_transfer_ = 1;
};

}  // namespace handoff
