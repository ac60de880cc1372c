// The actor around sink_rooms: the sink side of one engine rank.
#pragma once

#include "actors/decode/sink_rooms.hpp"
#include "actors/interfaces.hpp"

namespace handoff {

decode_interface spawn_decode(caf::actor_system& system, sink_rooms_settings settings,
                              transfer_engine_interface engine);

}  // namespace handoff
