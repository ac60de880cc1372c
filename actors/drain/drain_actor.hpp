// Drains one engine rank: tells everybody of it to begin no room any more, waits for the open ones, and says
// what is left. Asked by the runtime's owner, or by an operator on a control connection.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/log/logger.hpp"

namespace handoff {

struct drain_settings {
  std::string name;  ///< "engine prefill-0 dp0 pp0 cp0 tp0", for texts
  prefill_interface prefill;
  decode_interface decode;
  transfer_engine_interface engine;
  bootstrap_client_interface directory;
  caf::actor broker;
  duration status_timeout{};
  logger log;
};

drain_interface spawn_drain(caf::actor_system& system, drain_settings settings);

}  // namespace handoff
