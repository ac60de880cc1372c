// Asks every actor of the runtime for its status, all at once and within one deadline; an actor that misses
// it is named as silent, and nobody waits for it any longer.
#pragma once

#include "actors/interfaces.hpp"

namespace handoff {

monitor_interface spawn_monitor(caf::actor_system& system, duration deadline);

}  // namespace handoff
