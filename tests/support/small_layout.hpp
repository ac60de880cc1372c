// Small layouts for tests: equal on both sides but for pool sizes, with regions of their own per buffer.
#pragma once

#include "messages/layout.hpp"
#include "messages/metadata_row.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace handoff::testing {

struct small_component {
  std::uint32_t page_tokens = 4;
  std::uint64_t pages = 32;
  std::vector<std::uint32_t> layers = {0, 1};
  std::uint32_t heads = 2;
  std::uint32_t head_bytes = 8;
  bool heads_first = false;  ///< HND
};

/// Key and value buffers of every layer, one region each; then one component of metadata rows.
inline layout_descriptor small_layout(const std::vector<small_component>& components,
                                      std::uint64_t slots = 16) {
  layout_descriptor out;
  std::uint32_t region = 0;
  for (const auto& c : components) {
    component_id id{static_cast<std::uint16_t>(out.components.size())};
    out.components.push_back({component_kind::kv, "kv" + std::to_string(id.value), c.page_tokens, c.pages});
    for (auto layer : c.layers)
      for (auto kind : {buffer_kind::key, buffer_kind::value}) {
        buffer_layout b;
        b.component = id;
        b.layer = layer;
        b.kind = kind;
        b.head_count = c.heads;
        b.page_tokens = c.page_tokens;
        b.pages = c.pages;
        b.item_bytes = std::uint64_t{c.page_tokens} * c.heads * c.head_bytes;
        b.token_stride_bytes = c.heads_first ? c.head_bytes : std::uint64_t{c.heads} * c.head_bytes;
        b.head_stride_bytes = c.heads_first ? std::uint64_t{c.page_tokens} * c.head_bytes : c.head_bytes;
        b.region = region_id{region++};
        out.buffers.push_back(b);
      }
  }
  buffer_layout rows;
  rows.component = component_id{static_cast<std::uint16_t>(out.components.size())};
  rows.kind = buffer_kind::row;
  rows.pages = slots;
  rows.item_bytes = row_schema::row_bytes;
  rows.region = region_id{region};
  out.components.push_back({component_kind::metadata, "metadata", 0, slots});
  out.buffers.push_back(rows);
  return out;
}

}  // namespace handoff::testing
