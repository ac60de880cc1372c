#include "config/model_layout.hpp"

#include "messages/limits.hpp"

#include <limits>

#include <fmt/format.h>

namespace handoff {
namespace {

expected<void> check_ranks(rank_coord rank, rank_topology topology) {
  if (topology.tp != 1 || topology.pp != 1 || topology.cp != 1)
    return fail(errc::layout_refused,
                fmt::format("a pool is laid out for one rank per replica; the topology has pp{} cp{} tp{}",
                            topology.pp, topology.cp, topology.tp));
  if (rank.dp >= topology.dp || rank.tp != 0 || rank.pp != 0 || rank.cp != 0)
    return fail(errc::invalid_argument,
                fmt::format("rank {} lies outside of a topology of dp{} pp{} cp{} tp{}", to_string(rank),
                            topology.dp, topology.pp, topology.cp, topology.tp));
  return {};
}

expected<void> check_shape(const model_geometry& geometry, const pool_shape& pool) {
  auto refuse = [&](const std::string& why) {
    return fail(errc::invalid_argument, fmt::format("no layout for model {}: {}", geometry.name, why));
  };
  auto token_bytes = buffer_bytes_per_token(geometry);
  if (token_bytes == 0 || geometry.layers == 0) return refuse("its geometry has no layers, heads or dtype");
  if (pool.page_tokens == 0 || pool.pages == 0)
    return refuse(fmt::format("the pool has {} pages of {} tokens", pool.pages, pool.page_tokens));
  if (pool.pages > std::numeric_limits<page_id::rep>::max())
    return refuse(fmt::format("{} pages are more than a page id can name", pool.pages));
  auto buffers = std::uint64_t{geometry.layers} * buffers_per_layer(geometry);
  if (buffers > limits::layout_buffers)
    return refuse(fmt::format("{} buffers are more than the limit of {}", buffers, limits::layout_buffers));
  constexpr auto bytes_max = std::numeric_limits<std::uint64_t>::max();
  if (token_bytes > bytes_max / pool.page_tokens / pool.pages)
    return refuse(fmt::format("a buffer of {} pages of {} tokens has more than 2^64 bytes", pool.pages,
                              pool.page_tokens));
  return {};
}

/// A buffer of the layer, kind and heads still to be set.
buffer_layout make_buffer(const model_geometry& geometry, const pool_shape& pool) {
  buffer_layout buffer;
  buffer.memory = pool.memory;
  buffer.page_tokens = pool.page_tokens;
  buffer.pages = pool.pages;
  buffer.token_stride_bytes = buffer_bytes_per_token(geometry);
  buffer.item_bytes = buffer.token_stride_bytes * pool.page_tokens;
  if (geometry.kind == geometry_kind::gqa) {
    buffer.head_count = geometry.kv_heads;
    buffer.head_stride_bytes = std::uint64_t{geometry.head_dim} * geometry.element_bytes;
  }
  return buffer;
}

}  // namespace

expected<layout_descriptor> make_layout(const model_geometry& geometry, const pool_shape& pool,
                                        rank_coord rank, rank_topology topology) {
  if (auto ranks = check_ranks(rank, topology); !ranks) return unexpected(ranks.error());
  if (auto shape = check_shape(geometry, pool); !shape) return unexpected(shape.error());

  layout_descriptor layout;
  layout.rank = rank;
  layout.topology = topology;
  layout.components.push_back({component_kind::kv, "kv", pool.page_tokens, pool.pages});
  auto add = [&](std::uint32_t layer, buffer_kind kind) {
    auto buffer = make_buffer(geometry, pool);
    buffer.layer = layer;
    buffer.kind = kind;
    buffer.region = {static_cast<region_id::rep>(layout.buffers.size())};
    layout.buffers.push_back(buffer);
  };
  for (std::uint32_t layer = 0; layer < geometry.layers; ++layer) {
    if (geometry.kind == geometry_kind::mla) {
      add(layer, buffer_kind::latent);
    } else {
      add(layer, buffer_kind::key);
      add(layer, buffer_kind::value);
    }
  }
  return layout;
}

}  // namespace handoff
