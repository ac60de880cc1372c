// The registry of engines as an actor: answers register_rank and topology_query on control connections,
// pushes snapshots to those who asked. Decisions stand in registry_machine.
#pragma once

#include "actors/bootstrap/registry_machine.hpp"
#include "actors/control/token_bucket.hpp"
#include "actors/interfaces.hpp"
#include "actors/log/logger.hpp"

#include <map>

namespace handoff {

class bootstrap_state {
 public:
  bootstrap_state(bootstrap_interface::pointer self, const registry_context& context, caf::actor broker,
                  logger log)
      : self_(self), registry_(context), broker_(std::move(broker)), log_(std::move(log)) {}

  void received(const control_received& what);
  void closed(const control_closed& what);
  void tick();
  status_part status() const;

 private:
  void carry_out(const registry_effects& effects);
  template <class T>
  void answer(connection_id connection, const T& message);
  void schedule();

  bootstrap_interface::pointer self_;
  registry_machine registry_;
  caf::actor broker_;
  logger log_;
  control::line_limiter refusal_log_{{.per_second = 1, .burst = 10}};
  bool tick_pending_ = false;
};

bootstrap_interface spawn_bootstrap(caf::actor_system& system, registry_context context, caf::actor broker,
                                    logger log);

}  // namespace handoff
