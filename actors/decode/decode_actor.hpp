// Sink side of one engine rank: turns calls and frames into events of the rooms' receiver machines and
// carries out their effects. Owns the metadata rows that sources write. Decisions stand in receiver_machine.
#pragma once

#include "actors/decode/receiver_machine.hpp"
#include "actors/interfaces.hpp"
#include "actors/room/quiet_watch.hpp"
#include "actors/room/room_desk.hpp"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace handoff {

struct decode_settings {
  receiver_context rooms;
  room_desk_settings desk;
};

class decode_state {
 public:
  decode_state(decode_interface::pointer self, decode_settings settings, transfer_engine_interface engine);

  void announce(announce_call& call);
  void publish(publish_call& call);
  void commit(const commit_call& call);
  void abort(const abort_call& call);
  quiet_watch::answer quiesce(const quiesce_call& call);
  void frame(const room_frame& frame);
  void up(const peer_up& peer);
  void failed(const connect_failed& what);
  void down(const peer_down& peer);
  void endpoint_closed(const peer_endpoint_closed& peer);
  void tick();
  status_part status() const;

 private:
  struct room {
    receiver_machine machine;
    std::optional<lease_id> lease;
    std::optional<slot_id> slot;
  };

  void on(const room_frame& from, const room_done_message& m);
  void on(const room_frame& from, const abort_message& m);
  void on(const room_frame& from, const drained_message& m);
  void on(const room_frame&, const announce_message&) {}
  void on(const room_frame&, const publish_message&) {}
  void on(const room_frame&, const room_result_message&) {}
  room* live(room_key key);
  template <class Event>
  void step(room& r, Event&& event);
  template <class Event>
  void step_all(Event&& event);
  void carry_out(room& r, room_effects& effects);
  void settle(room_id id);
  void schedule();

  decode_interface::pointer self_;
  decode_settings settings_;
  transfer_engine_interface engine_;
  room_desk desk_;
  std::unordered_map<room_id, room> rooms_;
  std::map<std::string, peer_view> peers_by_name_;       ///< as rooms name them
  std::map<std::string, std::vector<room_id>> waiting_;  ///< rooms whose peer is being connected
  std::unordered_map<room_key, slot_id> uncommitted_;    ///< succeeded, row not taken yet
  quiet_watch quiet_;
  bool tick_pending_ = false;
  time_point tick_at_;
};

decode_interface spawn_decode(caf::actor_system& system, decode_settings settings,
                              transfer_engine_interface engine);

}  // namespace handoff
