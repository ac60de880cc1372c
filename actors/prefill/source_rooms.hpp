// Source side of one engine rank: its rooms, their leases, slots, tombstones and deadlines. Turns calls,
// frames and ends of transfers into events of the rooms' sender machines and carries out their effects. Pure:
// what it asks of others goes through `fabric_port`, what the engine hears through the desk's `event_port`.
#pragma once

#include "actors/prefill/sender_machine.hpp"
#include "actors/room/failure_injector.hpp"
#include "actors/room/rank_calls.hpp"
#include "actors/room/room_desk.hpp"

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

class source_rooms {
 public:
  source_rooms(source_rooms_settings settings, fabric_port& engine);

  /// One call of the engine (offer_call, send_call, abort_call) or one word of the transfer engine.
  template <class Event>
  void handle(Event& event, time_point now) {
    now_ = now;
    on(event);
  }
  /// No later than `deadline`.
  void tick(time_point now);
  time_point deadline() const;

  bool quiet(const quiesce_call& call) const;
  /// Rooms that ended since it was last asked.
  std::vector<room_id> take_ended() { return std::exchange(ended_, {}); }
  status_part status() const;
  const room_desk& desk() const { return desk_; }

 private:
  struct room {
    sender_machine machine;
    std::optional<lease_id> lease;
    std::optional<slot_id> slot;
    room_key key;                         ///< as the lease and slot are named; follows the machine's attempt
    bool offered = false;                 ///< the engine knows of it
    std::vector<room_frame> parked = {};  ///< of the next attempt, which opens when this one is over
  };

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
  room* room_for(const peer_view& from, room_key key, rank_coord source, rank_coord sink, bool may_open);
  void park(room_key key, const room_frame& frame);
  error no_room() const;
  room& open(room_key key);
  template <class Event>
  void step(room& r, Event&& event);
  template <class Event>
  void step_all(Event&& event);
  void carry_out(room& r, room_effects& effects);
  void fail_on_purpose(room& r, room_effects& effects);
  void settle(room_id id);

  source_rooms_settings settings_;
  fabric_port& engine_;
  room_desk desk_;
  std::unordered_map<room_id, room> rooms_;
  struct in_flight {
    room_id room;
    peer_id peer;
  };
  std::unordered_map<transfer_id, in_flight> transfers_;  ///< until drained, or the peer's endpoint is closed
  std::set<peer_id> peers_;
  std::uint64_t next_transfer_ = 1;
  std::vector<room_id> ended_;
  bool draining_ = false;
  time_point now_;  ///< of the event that is being handled
};

}  // namespace handoff
