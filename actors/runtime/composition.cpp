#include "actors/runtime/composition.hpp"

#include "actors/runtime/breakpoint.hpp"
#include "messages/limits.hpp"
#include "messages/metadata_row.hpp"
#include "transport/fabric/fabric_transport.hpp"

#include <random>

#include <fmt/format.h>

namespace handoff {
namespace {

transition_log log_transitions(const logger& log, std::string_view side) {
  if (!log.enabled(log_level::debug)) return {};  // no text is made on the hot path
  return [log, side](const room_key& key, std::string_view from, std::string_view to, time_point) {
    log.debug("room-state", "{} ({}): {} -> {}", to_string(key), side, from, to);
  };
}

}  // namespace

error check_pool(const pool_description& pool, std::size_t number) {
  auto refuse = [&](std::string text) {
    return error{errc::invalid_argument, fmt::format("pool \"{}\": {}", pool.name, text), {}};
  };
  if (number + 2 > limits::layout_components)
    return refuse(fmt::format("more than {} pools", limits::layout_components - 1));
  if (pool.page_tokens == 0 || pool.pages == 0) return refuse("page_tokens and pages must be at least 1");
  if (pool.pages > UINT32_MAX) return refuse(fmt::format("{} pages; page ids are 32-bit", pool.pages));
  if (pool.buffers.empty()) return refuse("has no buffers");
  for (std::size_t i = 0; i < pool.buffers.size(); ++i) {
    const auto& b = pool.buffers[i];
    if (!b.base) return refuse(fmt::format("buffer {} has no memory", i));
    if (b.layout.pages != pool.pages || b.layout.page_tokens != pool.page_tokens)
      return refuse(fmt::format("buffer {} has {} pages of {} tokens, the pool {} of {}", i, b.layout.pages,
                                b.layout.page_tokens, pool.pages, pool.page_tokens));
    if (b.layout.item_bytes == 0 || b.layout.item_bytes > UINT64_MAX / pool.pages)
      return refuse(fmt::format("buffer {} has items of {} bytes", i, b.layout.item_bytes));
    if (b.layout.memory != memory_kind::host)
      return refuse(fmt::format("buffer {} is {} memory; this build serves host memory", i,
                                to_string(b.layout.memory)));
  }
  return {};
}

layout_descriptor make_layout(const runtime_options& options, const std::vector<pool_description>& pools) {
  layout_descriptor layout;
  layout.rank = options.rank;
  layout.topology = options.topology;
  std::uint32_t region = 0;
  for (const auto& pool : pools) {
    component_id component{static_cast<std::uint16_t>(layout.components.size())};
    layout.components.push_back({component_kind::kv, pool.name, pool.page_tokens, pool.pages});
    for (const auto& buffer : pool.buffers) {
      auto b = buffer.layout;
      b.component = component;
      b.region = {region++};
      b.region_offset = 0;
      layout.buffers.push_back(b);
    }
  }
  component_id rows{static_cast<std::uint16_t>(layout.components.size())};
  auto slots = options.config.memory.slots;
  layout.components.push_back({component_kind::metadata, "metadata", 0, slots});
  buffer_layout b;
  b.component = rows;
  b.kind = buffer_kind::row;
  b.pages = slots;
  b.item_bytes = row_schema::row_bytes;
  b.region = {region};
  layout.buffers.push_back(b);
  return layout;
}

transport::settings transport_settings(const engine_config& config, incarnation_id incarnation) {
  const auto& t = config.transport;
  transport::settings s;
  s.write_bytes_max = t.write_bytes_max;
  s.window = t.window;
  s.transfers_max = t.transfers_max;
  s.peers_max = t.peers_max;
  s.probe_timeout = from_ms(config.timeouts.probe_ms);
  s.heartbeat_interval = from_ms(t.heartbeat_interval_ms);
  s.silence_after = from_ms(t.suspect_after_ms);
  s.spin = std::chrono::microseconds(t.spin_us);
  s.nap_max = std::chrono::microseconds(t.nap_max_us);
  s.host_id = transport::fabric::local_host_id();
  s.bind_address = t.bind;
  s.incarnation = incarnation;
  return s;
}

compatibility_record make_compatibility(const engine_config& config) {
  const auto& m = config.model;
  compatibility_record record;
  record.model = m.name;
  record.model_revision = m.revision;
  record.kv_dtype = m.kv_dtype;
  record.draft_model = m.draft;
  record.kernel_packing = m.kernel_packing;
  record.metadata_schema = row_schema::name;
  record.embedder_tag = m.embedder_tag;
  return record;
}

peer_session_context session_context(const engine_config& config, const logger& log) {
  const auto& t = config.transport;
  peer_session_context c;
  c.connect_timeout = from_ms(config.timeouts.connect_ms);
  c.silent_to_gone = from_ms(t.gone_after_ms - t.suspect_after_ms);
  c.suspect_timeout = from_ms(t.gone_after_ms - t.suspect_after_ms);
  c.reconnect_delay = from_ms(config.timeouts.retry_ms);
  c.log = break_in_peer(config.testing, log);
  return c;
}

sender_context make_sender_context(const engine_config& config,
                                   std::shared_ptr<const layout_descriptor> layout, rank_coord rank,
                                   const logger& log) {
  sender_context c;
  c.metadata_region = private_row_region(*layout);
  c.layout = std::move(layout);
  c.rank = rank;
  c.origin = fmt::format("{} {}", config.engine.name, to_string(rank));
  c.unclaimed_timeout = from_ms(config.timeouts.room_bootstrap_ms);
  c.bootstrap_timeout = from_ms(config.timeouts.room_bootstrap_ms);
  c.send_timeout = from_ms(config.timeouts.room_waiting_ms);
  c.sending_timeout = from_ms(config.timeouts.room_transferring_ms);
  c.chunks_max = config.limits.chunks_per_room;
  c.log = break_in(config.testing, "sender", log, log_transitions(log, "source"));
  c.result_timeout = from_ms(config.timeouts.room_result_ms);
  c.transfer_timeout = from_ms(config.timeouts.transfer_ms);
  c.quarantine_timeout = from_ms(config.timeouts.quarantine_ms);
  c.announce_interval = from_ms(config.timeouts.room_announce_ms);
  c.renewed_max = c.bootstrap_timeout + c.send_timeout;
  return c;
}

receiver_context make_receiver_context(const engine_config& config,
                                       std::shared_ptr<const layout_descriptor> layout, rank_coord rank,
                                       const logger& log) {
  receiver_context c;
  c.layout = std::move(layout);
  c.rank = rank;
  c.origin = fmt::format("{} {}", config.engine.name, to_string(rank));
  c.bootstrap_timeout = from_ms(config.timeouts.room_bootstrap_ms);
  c.waiting_timeout = from_ms(config.timeouts.room_waiting_ms);
  c.transfer_timeout = from_ms(config.timeouts.room_transferring_ms);
  c.quarantine_timeout = from_ms(config.timeouts.quarantine_ms);
  c.announce_interval = from_ms(config.timeouts.room_announce_ms);
  c.log = break_in(config.testing, "receiver", log, log_transitions(log, "sink"));
  return c;
}

failure_injector make_injector(const engine_config& config, rank_coord rank, std::string_view place) {
  const auto& t = config.testing;
  return {t.failure_probability, t.seed, fmt::format("{} {} {}", config.engine.name, to_string(rank), place)};
}

incarnation_id new_incarnation() {
  std::random_device entropy;
  return {(std::uint64_t{entropy()} << 32) | entropy()};
}

}  // namespace handoff
