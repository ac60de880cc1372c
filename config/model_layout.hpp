// A model's geometry and a pool's size -> the layout descriptor that the rank publishes.
#pragma once

#include "config/model_geometry.hpp"
#include "messages/layout.hpp"

#include <cstdint>

namespace handoff {

struct pool_shape {
  std::uint32_t page_tokens = 0;
  std::uint64_t pages = 0;
  memory_kind memory = memory_kind::host;
};

/// One KV component "kv" with every layer, sliding-window layers in full. Buffers stand in layer order, key
/// before value, tokens before heads (NHD); buffer i is all of region i, `pages * item_bytes` long.
/// Only tensor, pipeline and context parallelism of 1 is laid out; others are answered `layout_refused`, a
/// shape without pages or beyond the wire limits `invalid_argument`.
expected<layout_descriptor> make_layout(const model_geometry& geometry, const pool_shape& pool,
                                        rank_coord rank = {}, rank_topology topology = {});

}  // namespace handoff
