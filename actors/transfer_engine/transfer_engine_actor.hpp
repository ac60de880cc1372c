// The only actor that owns a transport: the shell of peer_desk.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/transfer_engine/peer_desk.hpp"

#include <memory>

namespace handoff {

transfer_engine_interface spawn_transfer_engine(caf::actor_system& system, peer_desk_settings settings,
                                                std::shared_ptr<transport::transport> transport,
                                                caf::actor broker, bootstrap_client_interface directory);

}  // namespace handoff
