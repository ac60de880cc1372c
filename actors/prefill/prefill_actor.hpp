// The actor around source_rooms: the source side of one engine rank.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/prefill/source_rooms.hpp"

namespace handoff {

prefill_interface spawn_prefill(caf::actor_system& system, source_rooms_settings settings,
                                transfer_engine_interface engine);

}  // namespace handoff
