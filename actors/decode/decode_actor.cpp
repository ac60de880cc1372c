#include "actors/decode/decode_actor.hpp"

#include "actors/room/rooms_shell.hpp"

namespace handoff {

decode_interface spawn_decode(caf::actor_system& system, sink_rooms_settings settings,
                              transfer_engine_interface engine) {
  using shell = rooms_shell<decode_interface, sink_rooms, sink_rooms_settings>;
  auto behavior = [settings = std::move(settings), engine = std::move(engine)](
                      decode_interface::pointer self) -> decode_interface::behavior_type {
    auto rooms = std::make_shared<shell>(self, settings, engine);
    return {
        [rooms](announce_call& m) { rooms->handle(m); },
        [rooms](publish_call& m) { rooms->handle(m); },
        [rooms](const commit_call& m) { rooms->handle(m); },
        [rooms](const abort_call& m) { rooms->handle(m); },
        [rooms](no_new_rooms m) { rooms->handle(m); },
        [rooms](const quiesce_call& m) { return rooms->quiesce(m); },
        [rooms](const room_frame& m) { rooms->handle(m); },
        [rooms](const peer_up& m) { rooms->handle(m); },
        [rooms](const connect_failed& m) { rooms->handle(m); },
        [rooms](const peer_down& m) { rooms->handle(m); },
        [rooms](const peer_endpoint_closed& m) { rooms->handle(m); },
        [rooms](tick) { rooms->tick(); },
        [rooms](const status_call&) { return rooms->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
