#include "actors/bootstrap/bootstrap_actor.hpp"

#include <algorithm>

namespace handoff {
namespace {

/// Leases end by this precision at the latest, whichever was registered last.
constexpr duration tick_max = std::chrono::seconds(1);

}  // namespace

template <class T>
void bootstrap_state::answer(connection_id connection, const T& message) {
  tell(broker_, control_send{connection, std::make_shared<const wire::bytes>(wire::encode(message))});
}

void bootstrap_state::received(const control_received& what) {
  registry_effects effects;
  error refused;
  const auto version = registry_.version();
  if (what.header.type == message_type::register_rank) {
    auto message = wire::decode_payload<register_rank_message>(*what.payload);
    if (!message) {
      refused = message.error();
    } else if (message->self != what.peer) {
      refused = {errc::peer_refused,
                 fmt::format("{} cannot register {}", what.peer.engine, message->self.engine),
                 {}};
    } else if (auto ok = registry_.register_rank(*message, now_of(self_), effects)) {
      answer(what.connection, *ok);
      if (registry_.version() != version)
        log_.info("rank-registered", "{} {} {} at {}", to_string(message->self.role), message->self.engine,
                  to_string(message->self.rank), message->control_address);
    } else {
      refused = ok.error();
    }
  } else if (what.header.type == message_type::unregister_rank) {
    auto message = wire::decode_payload<unregister_rank_message>(*what.payload);
    if (!message)
      refused = message.error();
    else if (message->self == what.peer)
      registry_.unregister_rank(message->self, effects);
    if (registry_.version() != version)
      log_.info("rank-left", "{} {} {}", to_string(what.peer.role), what.peer.engine,
                to_string(what.peer.rank));
  } else if (what.header.type == message_type::topology_query) {
    auto message = wire::decode_payload<topology_query_message>(*what.payload);
    refused =
        message ? registry_.subscribe({what.connection.value}, message->engine, effects) : message.error();
  }
  if (refused) {
    if (auto held_back = refusal_log_.say(now_of(self_)))
      log_.warn("bootstrap-refused", "{}: {} ({} lines held back before)", what.peer.engine,
                to_string(refused), *held_back);
    answer(what.connection, refusal_message{refused});
  }
  carry_out(effects);
}

void bootstrap_state::closed(const control_closed& what) {
  registry_.unsubscribe({what.connection.value});
}

void bootstrap_state::tick() {
  tick_pending_ = false;
  registry_effects effects;
  registry_.tick(now_of(self_), effects);
  carry_out(effects);
}

void bootstrap_state::carry_out(const registry_effects& effects) {
  for (const auto& effect : effects) answer({effect.subscriber.value}, effect.snapshot);
  schedule();
}

void bootstrap_state::schedule() {
  auto next = registry_.deadline();
  if (tick_pending_ || next == time_point::max()) return;
  tick_pending_ = true;
  tell_after(std::clamp(next - now_of(self_), duration(0), tick_max), bootstrap_interface(self_),
             handoff::tick{});
}

status_part bootstrap_state::status() const {
  return {"bootstrap",
          {{"ranks", registry_.ranks()},
           {"subscribers", registry_.subscribers()},
           {"version", registry_.version()}},
          {}};
}

bootstrap_interface spawn_bootstrap(caf::actor_system& system, registry_context context, caf::actor broker,
                                    logger log) {
  auto behavior = [context, broker = std::move(broker), log = std::move(log)](
                      bootstrap_interface::pointer self) -> bootstrap_interface::behavior_type {
    auto state = std::make_shared<bootstrap_state>(self, context, broker, log);
    return {
        [state](const control_received& m) { state->received(m); },
        [state](const control_closed& m) { state->closed(m); },
        [state](tick) { state->tick(); },
        [state](const status_call&) { return state->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
