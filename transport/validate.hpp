// Software checks before anything is posted: providers drop, wedge or crash on a bad key or bound instead of
// saying so. All arithmetic is overflow-safe. Pure.
#pragma once

#include "transport/transport.hpp"

namespace handoff::transport {

/// Size of every endpoint_record::probe.
inline constexpr std::uint64_t probe_bytes = 64;

/// `offset + bytes <= size`, also where the sum would wrap.
constexpr bool within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

/// A region to register: not null, not empty, and its end is an address.
expected<void> check_region(const memory_region& region);

/// Every block against both sides' regions, indexed by region id. The error (transport_region) names the
/// list (`list`, for example "last_blocks"), the block's index, the side, and the bound that was crossed.
expected<void> check_blocks(std::span<const block> blocks, std::span<const memory_region> local,
                            std::span<const remote_region> remote, std::string_view list);

/// Both lists of a transfer and the size of its notify frame (wire_too_large).
expected<void> check_transfer(const transfer& t, std::span<const memory_region> local,
                              std::span<const remote_region> remote);

/// The payload fits one frame behind its header, else wire_too_large.
expected<void> check_frame(const outgoing_frame& frame);

/// A peer's record before it is used: provider, protocol range, a probe region, no more regions than a layout
/// may name.
expected<void> check_endpoint(const endpoint_record& remote, std::string_view provider);

}  // namespace handoff::transport
