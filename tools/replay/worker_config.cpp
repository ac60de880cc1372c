#include "tools/replay/worker_config.hpp"

#include "config/model_geometry.hpp"
#include "config/model_layout.hpp"

#include <algorithm>

namespace handoff::replay {
namespace {

/// Bootstrapping, waiting, transferring, result.
constexpr std::uint32_t phases = 4;
/// Draining, fencing, and the pages' poisoning come after the verdict.
constexpr std::uint32_t after_verdict_s = 10;

bool any_fault(const worker_faults& f) {
  return !f.breakpoint.empty() || std::any_of(f.failure_probability.begin(), f.failure_probability.end(),
                                              [](double p) { return p > 0; });
}

}  // namespace

std::string engine_name(engine_role role) {
  return "replay-" + std::string(to_string(role));
}

std::uint32_t room_life_s(std::uint32_t timeout_s) {
  return phases * timeout_s + after_verdict_s;
}

expected<engine_config> make_worker_config(const worker_setup& setup) {
  engine_config config;
  config.engine.name = setup.name.empty() ? engine_name(setup.role) : setup.name;
  config.model.name = setup.model;
  config.memory.page_tokens = setup.page_tokens;
  if (setup.role == engine_role::bootstrap) {
    config.bootstrap.serve = true;
    config.bootstrap.bind = setup.bootstrap.empty() ? "127.0.0.1:0" : setup.bootstrap;
  } else {
    config.bootstrap.address = setup.bootstrap;
  }
  config.transport.provider = setup.provider;

  const auto bound_ms = setup.timeout_s * 1000;
  auto& t = config.timeouts;
  t.room_bootstrap_ms = t.room_waiting_ms = t.room_transferring_ms = t.room_result_ms = bound_ms;
  t.transfer_ms = bound_ms;
  t.quarantine_ms = std::min(t.quarantine_ms, bound_ms);
  t.tombstone_ms = std::max(t.tombstone_ms, phases * bound_ms);
  const auto take = [](std::uint32_t& value, std::uint32_t wanted) {
    if (wanted > 0) value = wanted;
  };
  take(config.transport.heartbeat_interval_ms, setup.bounds.heartbeat_ms);
  take(config.transport.suspect_after_ms, setup.bounds.suspect_ms);
  take(config.transport.gone_after_ms, setup.bounds.gone_ms);
  take(t.connect_ms, setup.bounds.connect_ms);
  take(t.probe_ms, setup.bounds.connect_ms);
  take(t.bootstrap_lease_ms, setup.bounds.lease_ms);
  take(t.bootstrap_renew_ms, setup.bounds.renew_ms);
  const auto& f = setup.faults;
  config.testing = {any_fault(f), f.failure_probability, setup.seed, f.breakpoint, f.breakpoint_action};
  config.log.level = "warn";
  if (auto checked = check_config(config, "replay"); !checked) return unexpected(checked.error());
  return config;
}

expected<layout_descriptor> make_worker_layout(const worker_setup& setup) {
  const auto geometry = find_geometry(setup.model);
  if (!geometry) return unexpected(geometry.error());
  return make_layout(*geometry, {setup.page_tokens, setup.pages, memory_kind::host});
}

}  // namespace handoff::replay
