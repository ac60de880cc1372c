#include "actors/prefill/prefill_actor.hpp"

#include "actors/room/rooms_shell.hpp"

namespace handoff {

prefill_interface spawn_prefill(caf::actor_system& system, source_rooms_settings settings,
                                transfer_engine_interface engine) {
  using shell = rooms_shell<prefill_interface, source_rooms, source_rooms_settings>;
  auto behavior = [settings = std::move(settings), engine = std::move(engine)](
                      prefill_interface::pointer self) -> prefill_interface::behavior_type {
    auto rooms = std::make_shared<shell>(self, settings, engine);
    return {
        [rooms](offer_call& m) { rooms->handle(m); },
        [rooms](const send_call& m) { rooms->handle(m); },
        [rooms](const abort_call& m) { rooms->handle(m); },
        [rooms](no_new_rooms m) { rooms->handle(m); },
        [rooms](const quiesce_call& m) { return rooms->quiesce(m); },
        [rooms](const room_frame& m) { rooms->handle(m); },
        [rooms](const transfer_ended& m) { rooms->handle(m); },
        [rooms](const peer_up& m) { rooms->handle(m); },
        [rooms](const peer_down& m) { rooms->handle(m); },
        [rooms](const peer_endpoint_closed& m) { rooms->handle(m); },
        [rooms](tick) { rooms->tick(); },
        [rooms](const status_call&) { return rooms->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
