// The memory of one simulated engine rank: small buffers of every component, metadata rows, and a way back
// from an address to what lies there. Each token of each buffer is one word that says whose it is.
#pragma once

#include "messages/layout.hpp"
#include "messages/metadata_row.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace handoff::sim {

inline constexpr std::uint64_t word_bytes = 8;
inline constexpr std::uint32_t long_page_tokens = 8;  ///< the largest page: borders of all components

/// The word of one token: an offer (one filling of source pages), the token, the buffer.
struct word {
  static constexpr std::uint64_t mark = 0xa5c3;
  static constexpr std::uint64_t poison = 0xdddddddddddddddd;
  std::uint16_t offer = 0, token = 0;
  std::uint16_t buffer = 0;

  std::uint64_t packed() const {
    return std::uint64_t{offer} << 48 | std::uint64_t{token} << 32 | std::uint64_t{buffer} << 16 | mark;
  }
  static std::optional<word> of(std::uint64_t bits);
};

/// A place in a buffer of pages, or in a row.
struct place {
  bool row = false;
  std::size_t buffer = 0;   ///< index into layout().buffers
  std::uint64_t item = 0;   ///< page or slot
  std::uint64_t token = 0;  ///< inside of the page
};

class pool_memory {
 public:
  pool_memory(std::uint64_t long_pages, std::uint32_t slots);

  const std::shared_ptr<const layout_descriptor>& layout() const { return layout_; }
  /// In the order in which they are registered: buffers, sink rows, source rows.
  std::span<std::byte> region(std::size_t i) { return regions_[i]; }
  std::size_t regions() const { return regions_.size(); }
  std::span<std::byte> sink_rows() { return regions_[regions_.size() - 2]; }
  std::span<std::byte> source_rows() { return regions_.back(); }
  region_id source_row_region() const { return {static_cast<std::uint32_t>(regions_.size() - 1)}; }
  std::size_t buffers() const { return regions_.size() - 2; }

  std::optional<place> find(const std::byte* address) const;
  std::uint64_t read(std::size_t buffer, page_id page, std::uint64_t token) const;
  void write(std::size_t buffer, page_id page, std::uint64_t token, std::uint64_t bits);
  /// Nobody's any more: every word of these pages becomes poison.
  void poison(component_id component, std::span<const page_id> pages);

 private:
  std::size_t offset(std::size_t buffer, page_id page, std::uint64_t token) const;

  std::shared_ptr<const layout_descriptor> layout_;
  std::vector<std::vector<std::byte>> regions_;
};

}  // namespace handoff::sim
