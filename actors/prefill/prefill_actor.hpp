// Source side of one engine rank: turns calls, frames and transfer ends into events of the rooms' sender
// machines and carries out their effects. Decisions stand in sender_machine.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/prefill/sender_machine.hpp"
#include "actors/room/quiet_watch.hpp"
#include "actors/room/room_desk.hpp"

#include <map>
#include <optional>
#include <unordered_map>

namespace handoff {

struct prefill_settings {
  sender_context rooms;
  room_desk_settings desk;
};

class prefill_state {
 public:
  prefill_state(prefill_interface::pointer self, prefill_settings settings, transfer_engine_interface engine);

  void offer(offer_call& call);
  void send(const send_call& call);
  void abort(const abort_call& call);
  quiet_watch::answer quiesce(const quiesce_call& call);
  void frame(const room_frame& frame);
  void transfer(const transfer_ended& ended);
  void up(const peer_up& peer) { peers_[peer.view.peer] = peer.view; }
  void down(const peer_down& peer);
  void endpoint_closed(const peer_endpoint_closed& peer);
  void tick();
  status_part status() const;

 private:
  struct room {
    sender_machine machine;
    std::optional<lease_id> lease;
    std::optional<slot_id> slot;
    room_key key;          ///< as the lease and slot are named; follows the machine's attempt
    bool offered = false;  ///< the engine knows of it
  };

  room& open(room_key key);
  void on(const room_frame& from, const announce_message& m);
  void on(const room_frame& from, const publish_message& m);
  void on(const room_frame& from, const room_result_message& m);
  void on(const room_frame& from, const abort_message& m);
  void on(const room_frame&, const room_done_message&) {}
  void on(const room_frame&, const drained_message&) {}
  /// The room that a message is about; answers for ended rooms and makes unclaimed ones.
  room* room_for(const peer_view& from, room_key key, rank_coord source, rank_coord sink, bool may_open);
  template <class Event>
  void step(room& r, Event&& event);
  void carry_out(room& r, room_effects& effects);
  void settle(room_id id);
  void schedule();

  prefill_interface::pointer self_;
  prefill_settings settings_;
  transfer_engine_interface engine_;
  room_desk desk_;
  std::unordered_map<room_id, room> rooms_;
  std::unordered_map<transfer_id, room_id> transfers_;
  std::map<peer_id, peer_view> peers_;
  std::uint64_t next_transfer_ = 1;
  quiet_watch quiet_;
  bool tick_pending_ = false;
  time_point tick_at_;
};

prefill_interface spawn_prefill(caf::actor_system& system, prefill_settings settings,
                                transfer_engine_interface engine);

}  // namespace handoff
