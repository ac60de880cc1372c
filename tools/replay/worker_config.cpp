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

}  // namespace

std::string engine_name(engine_role role) {
  return "replay-" + std::string(to_string(role));
}

std::uint32_t room_life_s(std::uint32_t timeout_s) {
  return phases * timeout_s + after_verdict_s;
}

expected<engine_config> make_worker_config(const worker_setup& setup) {
  engine_config config;
  config.engine.name = engine_name(setup.role);
  config.model.name = setup.model;
  config.memory.page_tokens = setup.page_tokens;
  if (setup.bootstrap.empty()) {
    config.bootstrap.serve = true;
    config.bootstrap.bind = "127.0.0.1:0";
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
