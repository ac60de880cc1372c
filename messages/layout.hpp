// What one engine rank's memory looks like, as published to peers at connect. All sizes are bytes unless
// named otherwise. The planner (transport/layout/) judges two of these; nothing else interprets them.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/inspect.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

enum class memory_kind : std::uint8_t { host = 0, cuda = 1, device_sim = 2 };
inline constexpr memory_kind last_enumerator(memory_kind) {
  return memory_kind::device_sim;
}

/// What a buffer holds. KV kinds first; the others are state components of hybrid and sparse models.
enum class buffer_kind : std::uint8_t {
  key = 0,
  value = 1,
  latent = 2,  ///< MLA: one compressed vector per token, replicated over TP
  mamba = 3,
  swa = 4,
  swa_ring = 5,
  dsa = 6,
  dsa_tail = 7,
  c4 = 8,
  c128 = 9,
  block_scale = 10,
  index_k = 11,
  row = 12,  ///< metadata rows: item p is slot p
};
inline constexpr buffer_kind last_enumerator(buffer_kind) {
  return buffer_kind::row;
}

enum class component_kind : std::uint8_t {
  kv = 0,        ///< paged by token: pages of one cache group
  state = 1,     ///< rows per request
  metadata = 2,  ///< one row per slot
};
inline constexpr component_kind last_enumerator(component_kind) {
  return component_kind::metadata;
}

/// One contiguous buffer: `pages` items of `item_bytes`, item p at `region_offset + p * item_bytes` of its
/// region.
struct buffer_layout {
  component_id component;
  std::uint32_t layer = 0;
  buffer_kind kind = buffer_kind::key;
  memory_kind memory = memory_kind::host;
  std::uint32_t head_first = 0, head_count = 0;  ///< heads held here; 0 heads for kinds without heads
  std::uint32_t page_tokens = 0;                 ///< tokens per item
  std::uint64_t pages = 0;
  std::uint64_t item_bytes = 0;
  std::uint64_t token_stride_bytes = 0;  ///< NHD: head_count * head_bytes; HND: head_bytes
  std::uint64_t head_stride_bytes = 0;   ///< NHD: head_bytes; HND: page_tokens * head_bytes
  region_id region;
  std::uint64_t region_offset = 0;
  friend bool operator==(const buffer_layout&, const buffer_layout&) = default;
};

/// Shape of one state component: what a rank holds of each slice dimension, in independently sharded groups.
struct state_layout {
  component_id component;
  buffer_kind kind = buffer_kind::mamba;
  std::vector<std::uint32_t> layers;
  std::vector<std::uint32_t> slice_dims;
  std::vector<std::uint32_t> groups;
  std::uint32_t outer_count = 1;
  std::uint64_t row_bytes = 0;
  friend bool operator==(const state_layout&, const state_layout&) = default;
};

struct component_layout {
  component_kind kind = component_kind::kv;
  std::string name;  ///< of the cache group, for texts: "kv", "swa", "metadata"
  std::uint32_t page_tokens = 0;
  std::uint64_t pages = 0;
  friend bool operator==(const component_layout&, const component_layout&) = default;
};

struct layout_descriptor {
  static constexpr std::uint16_t current_version = 1;

  std::uint16_t version = current_version;
  rank_coord rank;
  rank_topology topology;
  std::vector<component_layout> components;
  std::vector<buffer_layout> buffers;
  std::vector<state_layout> states;
  friend bool operator==(const layout_descriptor&, const layout_descriptor&) = default;
};

/// Counts against messages/limits.hpp; what the numbers mean is the planner's to judge.
error check_limits(const layout_descriptor& layout);

std::string_view to_string(memory_kind kind);
std::string_view to_string(buffer_kind kind);
std::string_view to_string(component_kind kind);

template <class F>
auto inspect(F& f, buffer_layout& x) {
  return fields(
      f, "buffer_layout", field("component", x.component), field("layer", x.layer), field("kind", x.kind),
      field("memory", x.memory), field("head_first", x.head_first), field("head_count", x.head_count),
      field("page_tokens", x.page_tokens), field("pages", x.pages), field("item_bytes", x.item_bytes),
      field("token_stride_bytes", x.token_stride_bytes), field("head_stride_bytes", x.head_stride_bytes),
      field("region", x.region), field("region_offset", x.region_offset));
}
template <class F>
auto inspect(F& f, state_layout& x) {
  return fields(f, "state_layout", field("component", x.component), field("kind", x.kind),
                field("layers", x.layers), field("slice_dims", x.slice_dims), field("groups", x.groups),
                field("outer_count", x.outer_count), field("row_bytes", x.row_bytes));
}
template <class F>
auto inspect(F& f, component_layout& x) {
  return fields(f, "component_layout", field("kind", x.kind), field("name", x.name),
                field("page_tokens", x.page_tokens), field("pages", x.pages));
}
template <class F>
auto inspect(F& f, layout_descriptor& x) {
  return fields(f, "layout_descriptor", field("version", x.version), field("rank", x.rank),
                field("topology", x.topology), field("components", x.components), field("buffers", x.buffers),
                field("states", x.states));
}

}  // namespace handoff
