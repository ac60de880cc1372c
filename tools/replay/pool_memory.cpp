#include "tools/replay/pool_memory.hpp"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>

namespace handoff::replay {
namespace {

/// Differs from byte to byte, so that a canary copied from elsewhere in itself is seen as well.
std::byte canary_at(std::size_t buffer, std::size_t offset) {
  return static_cast<std::byte>((offset * 0x9d + buffer * 0x35 + 0xc5) & 0xff);
}

std::uint64_t data_bytes(const buffer_layout& buffer) {
  return buffer.pages * buffer.item_bytes;
}

}  // namespace

std::uint64_t token_bytes(const buffer_layout& buffer) {
  return buffer.item_bytes / buffer.page_tokens;
}

expected<pool_memory> pool_memory::create(layout_descriptor layout) {
  pool_memory memory(std::move(layout));
  for (std::size_t i = 0; i < memory.layout_.buffers.size(); ++i) {
    const auto& buffer = memory.layout_.buffers[i];
    if (token_bytes(buffer) % 8 != 0)
      return fail(errc::invalid_argument,
                  fmt::format("layer {} {}: {} bytes per token are no multiple of 8", buffer.layer,
                              to_string(buffer.kind), token_bytes(buffer)));
    const auto bytes = data_bytes(buffer) + 2 * canary_bytes;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      return fail(errc::io, fmt::format("no memory for layer {} {} ({} bytes, {} pages): {}", buffer.layer,
                                        to_string(buffer.kind), bytes, buffer.pages,
                                        std::generic_category().message(errno)));
    memory.mappings_.push_back({static_cast<std::byte*>(base), bytes});
    auto* front = memory.mappings_.back().base;
    auto* behind = front + canary_bytes + data_bytes(buffer);
    for (std::size_t k = 0; k < canary_bytes; ++k) front[k] = behind[k] = canary_at(i, k);
  }
  return memory;
}

pool_memory::~pool_memory() {
  for (const auto& mapping : mappings_) munmap(mapping.base, mapping.bytes);
}

std::span<std::byte> pool_memory::item(std::size_t buffer, page_id page) const {
  const auto bytes = layout_.buffers[buffer].item_bytes;
  return {mappings_[buffer].base + canary_bytes + page.value * bytes, bytes};
}

std::span<std::byte> pool_memory::item(std::size_t buffer, page_id page, std::uint32_t tokens) const {
  return item(buffer, page).first(tokens * token_bytes(layout_.buffers[buffer]));
}

pool_description pool_memory::describe() const {
  const auto& component = layout_.components.front();
  pool_description pool{component.name, component.page_tokens, component.pages, {}};
  for (std::size_t i = 0; i < layout_.buffers.size(); ++i)
    pool.buffers.push_back({item(i, {0}).data(), layout_.buffers[i]});
  return pool;
}

std::optional<std::string> pool_memory::broken_canary() const {
  for (std::size_t i = 0; i < mappings_.size(); ++i) {
    const auto& buffer = layout_.buffers[i];
    const auto* front = mappings_[i].base;
    const auto* behind = front + canary_bytes + data_bytes(buffer);
    for (std::size_t k = 0; k < canary_bytes; ++k) {
      const auto wanted = canary_at(i, k);
      if (front[k] == wanted && behind[k] == wanted) continue;
      return fmt::format("layer {} {}: a canary was overwritten {} of the buffer", buffer.layer,
                         to_string(buffer.kind),
                         front[k] != wanted ? fmt::format("{} bytes before the start", canary_bytes - k)
                                            : fmt::format("{} bytes behind the end", k));
    }
  }
  return std::nullopt;
}

}  // namespace handoff::replay
