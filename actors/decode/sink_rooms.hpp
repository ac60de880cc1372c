// Sink side of one engine rank: its rooms, their leases, tombstones and deadlines, and the metadata rows that
// sources write. Turns calls and frames into events of the rooms' receiver machines and carries out their
// effects. Pure: what it asks of others goes through `fabric_port`, what the engine hears through the desk's
// `event_port`.
#pragma once

#include "actors/decode/receiver_machine.hpp"
#include "actors/room/rooms_base.hpp"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff {

struct sink_rooms_settings {
  receiver_context rooms;
  room_desk_settings desk;
  failure_injector failures;
};

struct sink_room {
  receiver_machine machine;
  std::optional<lease_id> lease;
  std::optional<slot_id> slot;
  std::string asked;          ///< its source, as the engine named it
  bool source_knows = false;  ///< it told an end, or `drained`, which answers ours
};

class sink_rooms final : public rooms_base<sink_room> {
 public:
  sink_rooms(sink_rooms_settings settings, fabric_port& engine);

  /// One call of the engine (announce_call, publish_call, commit_call, abort_call) or one word of the
  /// transfer engine.
  template <class Event>
  void handle(Event& event, time_point now) {
    now_ = now;
    on(event);
  }
  status_part status() const;

 private:
  void on(announce_call& call);
  void on(publish_call& call);
  void on(const commit_call& call);
  void on(const abort_call& call);
  void on(const no_new_rooms&) { draining_ = true; }
  void on(const room_frame& frame);
  void on(const transfer_ended&) {}
  void on(const peer_up& peer);
  void on(const connect_failed& what);
  void on(const peer_down& peer);
  void on(const peer_endpoint_closed& peer);

  void on(const room_frame& from, const room_done_message& m);
  void on(const room_frame& from, const progress_message& m);
  void on(const room_frame& from, const abort_message& m);
  void on(const room_frame& from, const drained_message& m);
  void on(const room_frame&, const announce_message&) {}
  void on(const room_frame&, const publish_message&) {}
  void on(const room_frame&, const room_result_message&) {}

  void carry_out(sink_room& r, room_effect& effect) override;
  void buried(sink_room r) override;
  void refuse(const announce_call& call, room_key key, const error& reason);
  void owe(room_id room, std::string source);
  void told(room_id room);

  receiver_context context_;
  std::map<std::string, peer_view> peers_by_name_;       ///< as rooms name them
  std::map<std::string, std::vector<room_id>> waiting_;  ///< rooms whose peer is being connected
  /// Failed rooms with their source's name, until it has answered: told again when it is connected anew.
  std::map<room_id, std::string> untold_;
  std::unordered_map<room_key, slot_id> uncommitted_;  ///< succeeded, row not taken yet
};

}  // namespace handoff
