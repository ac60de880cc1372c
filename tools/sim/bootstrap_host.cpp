#include "tools/sim/bootstrap_host.hpp"

namespace handoff::sim {

bootstrap_host::bootstrap_host(kernel& k, control_net& net, std::size_t slot, engine_identity self,
                               duration skew, int drift_ppm)
    : host(k, slot, self, {}, skew, drift_ppm),
      net_(net),
      registry_(
          {.incarnation = self.incarnation, .events = [&k](std::string_view state, std::string_view event) {
             ++k.counts.registry[{event, state}];
           }}) {}

std::optional<part> bootstrap_host::route(message_type type) const {
  if (type == message_type::register_rank || type == message_type::topology_query) return part::registry;
  return {};
}

void bootstrap_host::on_control(part, control_event& event) {
  if (const auto* got = std::get_if<control_received>(&event)) received(*got);
  if (const auto* gone = std::get_if<control_closed>(&event)) registry_.unsubscribe({gone->connection.value});
  rearm();
}

void bootstrap_host::received(const control_received& what) {
  registry_effects effects;
  error refused;
  if (what.header.type == message_type::register_rank) {
    auto message = wire::decode_payload<register_rank_message>(*what.payload);
    auto ok = message ? registry_.register_rank(*message, now(), effects)
                      : expected<register_ok_message>(unexpected(message.error()));
    if (ok)
      answer(what.connection, *ok);
    else
      refused = ok.error();
  } else if (what.header.type == message_type::topology_query) {
    auto message = wire::decode_payload<topology_query_message>(*what.payload);
    refused =
        message ? registry_.subscribe({what.connection.value}, message->engine, effects) : message.error();
  }
  if (refused) {
    k_.trace(name(), "refuses {}: {}", what.peer.engine, to_string(refused));
    answer(what.connection, refusal_message{refused});
  }
  carry_out(effects);
}

void bootstrap_host::carry_out(const registry_effects& effects) {
  for (const auto& effect : effects) answer({effect.subscriber.value}, effect.snapshot);
}

void bootstrap_host::tick(part) {
  registry_effects effects;
  registry_.tick(now(), effects);
  carry_out(effects);
  rearm();
}

}  // namespace handoff::sim
