#include "tools/sim/memory.hpp"

#include <cstring>

namespace handoff::sim {
namespace {

struct component {
  const char* name;
  std::uint32_t page_tokens;
  std::vector<std::uint32_t> layers;
  std::vector<buffer_kind> kinds;
};

layout_descriptor make_layout(std::uint64_t long_pages, std::uint32_t slots) {
  const component all[] = {{"kv", 4, {0, 1}, {buffer_kind::key, buffer_kind::value}},
                           {"latent", long_page_tokens, {2}, {buffer_kind::latent}}};
  layout_descriptor out;
  std::uint32_t region = 0;
  const auto id = [&] { return component_id{static_cast<std::uint16_t>(out.components.size())}; };
  for (const auto& c : all) {
    const auto pages = long_pages * long_page_tokens / c.page_tokens;
    for (auto layer : c.layers)
      for (auto kind : c.kinds) {
        buffer_layout b;
        b.component = id();
        b.layer = layer;
        b.kind = kind;
        b.head_count = kind == buffer_kind::latent ? 0 : 1;
        b.page_tokens = c.page_tokens;
        b.pages = pages;
        b.item_bytes = c.page_tokens * word_bytes;
        b.token_stride_bytes = b.head_stride_bytes = word_bytes;
        b.region = {region++};
        out.buffers.push_back(b);
      }
    out.components.push_back({component_kind::kv, c.name, c.page_tokens, pages});
  }
  buffer_layout rows;
  rows.component = id();
  rows.kind = buffer_kind::row;
  rows.pages = slots;
  rows.item_bytes = row_schema::row_bytes;
  rows.region = {region};
  out.components.push_back({component_kind::metadata, "metadata", 0, slots});
  out.buffers.push_back(rows);
  return out;
}

}  // namespace

std::optional<word> word::of(std::uint64_t bits) {
  if ((bits & 0xffff) != mark) return {};
  return word{static_cast<std::uint16_t>(bits >> 48), static_cast<std::uint16_t>(bits >> 32),
              static_cast<std::uint16_t>(bits >> 16)};
}

pool_memory::pool_memory(std::uint64_t long_pages, std::uint32_t slots)
    : layout_(std::make_shared<const layout_descriptor>(make_layout(long_pages, slots))) {
  for (const auto& b : layout_->buffers) regions_.emplace_back(b.pages * b.item_bytes, std::byte{0xdd});
  regions_.emplace_back(std::size_t{slots} * row_schema::row_bytes);
  regions_[regions_.size() - 2].assign(regions_.back().size(), std::byte{0});
}

std::optional<place> pool_memory::find(const std::byte* address) const {
  for (std::size_t i = 0; i + 1 < regions_.size(); ++i) {
    const auto& r = regions_[i];
    if (address < r.data() || address >= r.data() + r.size()) continue;
    const auto& b = layout_->buffers[i];
    const auto at = static_cast<std::uint64_t>(address - r.data());
    return place{b.kind == buffer_kind::row, i, at / b.item_bytes, at % b.item_bytes / word_bytes};
  }
  return {};
}

std::size_t pool_memory::offset(std::size_t buffer, page_id page, std::uint64_t token) const {
  return page.value * layout_->buffers[buffer].item_bytes + token * word_bytes;
}

std::uint64_t pool_memory::read(std::size_t buffer, page_id page, std::uint64_t token) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, regions_[buffer].data() + offset(buffer, page, token), sizeof bits);
  return bits;
}

void pool_memory::write(std::size_t buffer, page_id page, std::uint64_t token, std::uint64_t bits) {
  std::memcpy(regions_[buffer].data() + offset(buffer, page, token), &bits, sizeof bits);
}

void pool_memory::poison(component_id component, std::span<const page_id> pages) {
  for (std::size_t i = 0; i < buffers(); ++i) {
    const auto& b = layout_->buffers[i];
    if (b.component != component) continue;
    for (auto page : pages) std::memset(regions_[i].data() + page.value * b.item_bytes, 0xdd, b.item_bytes);
  }
}

}  // namespace handoff::sim
