// The simulated bootstrap process: the registry of engines behind control connections.
#pragma once

#include "actors/bootstrap/registry_machine.hpp"
#include "tools/sim/control_net.hpp"

namespace handoff::sim {

class bootstrap_host final : public host {
 public:
  bootstrap_host(kernel& k, control_net& net, std::size_t slot, engine_identity self, duration skew,
                 int drift_ppm);

  void on_control(part to, control_event& event) override;
  std::optional<part> route(message_type type) const override;
  void on_events(std::span<transport::event>) override {}
  std::size_t ranks() const { return registry_.ranks(); }

 private:
  void received(const control_received& what);
  void carry_out(const registry_effects& effects);
  template <class T>
  void answer(connection_id connection, const T& message) {
    net_.send(*this, {connection, std::make_shared<const wire::bytes>(wire::encode(message))});
  }
  void tick(part p) override;
  void rearm() override { arm(part::registry, registry_.deadline()); }

  control_net& net_;
  registry_machine registry_;
};

}  // namespace handoff::sim
