// The actor around the directory: our side of the registry.
#pragma once

#include "actors/bootstrap/directory.hpp"
#include "actors/interfaces.hpp"

namespace handoff {

bootstrap_client_interface spawn_bootstrap_client(caf::actor_system& system, directory_settings settings,
                                                  caf::actor broker);

}  // namespace handoff
