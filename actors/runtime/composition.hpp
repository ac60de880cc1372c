// How a runtime's parts are made from its options: layout, transport settings, machine contexts. Pure
// functions; the composition root (runtime.cpp) calls them once.
#pragma once

#include "actors/decode/receiver_machine.hpp"
#include "actors/log/logger.hpp"
#include "actors/prefill/sender_machine.hpp"
#include "actors/room/failure_injector.hpp"
#include "actors/runtime.hpp"
#include "actors/transfer_engine/peer_session_machine.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace handoff {

inline duration from_ms(std::uint64_t ms) {
  return std::chrono::milliseconds(ms);
}

/// invalid_argument names pool, buffer, field and value.
error check_pool(const pool_description& pool, std::size_t number);

/// Components and buffers in the order of registration; regions 0..n-1 are the buffers, region n the metadata
/// rows that peers write, region n + 1 (not in the layout) the private rows that we send from.
layout_descriptor make_layout(const runtime_options& options, const std::vector<pool_description>& pools);
inline region_id row_region(const layout_descriptor& layout) {
  return layout.buffers.back().region;
}
inline region_id private_row_region(const layout_descriptor& layout) {
  return {row_region(layout).value + 1};
}

transport::settings transport_settings(const engine_config& config, incarnation_id incarnation);
compatibility_record make_compatibility(const engine_config& config);
peer_session_context session_context(const engine_config& config, const logger& log);
sender_context make_sender_context(const engine_config& config,
                                   std::shared_ptr<const layout_descriptor> layout, rank_coord rank,
                                   const logger& log);
receiver_context make_receiver_context(const engine_config& config,
                                       std::shared_ptr<const layout_descriptor> layout, rank_coord rank,
                                       const logger& log);
/// Failures on purpose in one place of a rank (its source rooms, its sink rooms, its peers).
failure_injector make_injector(const engine_config& config, rank_coord rank, std::string_view place);
incarnation_id new_incarnation();

}  // namespace handoff
