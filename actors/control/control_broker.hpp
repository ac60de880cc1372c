// The one actor that does control-plane I/O: the listener of this process and every control connection,
// dialled or accepted. It checks hello (protocol, token) before anybody else hears of a connection, then
// hands whole, checksummed messages to their users by type: registry, transfer engine, monitor. Nothing in it
// blocks, and what one connection can make it keep is bounded in both directions.
//
//   greeting   TCP is up or coming up; hello and hello_ok are awaited, bounded in time and size
//   open       messages flow
//   ending     users were told; what was written last gets a moment to leave
#pragma once

#include "actors/control/admission_machine.hpp"
#include "actors/interfaces.hpp"
#include "actors/log/logger.hpp"
#include "config/token_file.hpp"

#include <chrono>
#include <vector>

namespace handoff {

struct control_broker_settings {
  engine_identity self;
  auth_token token;  ///< sent with our hellos, asked for in those of others
  control::admission_context admission;
  duration greeting_timeout{};
  logger log;
};

/// Takes control_routes, control_dial, control_send and control_close. Owns `listeners`, sockets that are
/// listening.
caf::actor spawn_control_broker(caf::actor_system& system, control_broker_settings settings,
                                std::vector<int> listeners);

}  // namespace handoff
