// The memory of one side's pool: a mapping per buffer of the layout, with canaries before and behind each.
#pragma once

#include "actors/runtime.hpp"
#include "messages/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace handoff::replay {

class pool_memory {
 public:
  /// Bytes of canary on either side of a buffer: one page of the machine.
  static constexpr std::size_t canary_bytes = 4096;

  /// Maps what `layout` describes (one component, host memory). Errors: io (out of memory),
  /// invalid_argument (tokens that are no multiple of 8 bytes: the pattern is made of 8-byte words).
  static expected<pool_memory> create(layout_descriptor layout);
  pool_memory(pool_memory&& other) noexcept = default;
  pool_memory& operator=(pool_memory&& other) = delete;
  ~pool_memory();

  const layout_descriptor& layout() const { return layout_; }
  std::span<const buffer_layout> buffers() const { return layout_.buffers; }
  std::uint64_t pages() const { return layout_.components.front().pages; }
  std::uint32_t page_tokens() const { return layout_.components.front().page_tokens; }

  /// Memory of one page in one buffer; the first `tokens` tokens of it.
  std::span<std::byte> item(std::size_t buffer, page_id page) const;
  std::span<std::byte> item(std::size_t buffer, page_id page, std::uint32_t tokens) const;

  /// What runtime::register_pool takes; valid as long as this object.
  pool_description describe() const;
  /// The first canary byte that was overwritten, with its buffer and offset; nothing while all are intact.
  std::optional<std::string> broken_canary() const;

 private:
  struct mapping {
    std::byte* base = nullptr;  ///< of the front canary
    std::size_t bytes = 0;      ///< with both canaries
  };

  explicit pool_memory(layout_descriptor layout) : layout_(std::move(layout)) {}

  layout_descriptor layout_;
  std::vector<mapping> mappings_;
};

/// Bytes of one token in one buffer.
std::uint64_t token_bytes(const buffer_layout& buffer);

}  // namespace handoff::replay
