#include "transport/validate.hpp"

#include "messages/limits.hpp"
#include "messages/wire.hpp"

#include <string_view>

#include <fmt/format.h>

namespace handoff::transport {

namespace {

struct side {
  std::string_view name;
  region_id region;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

unexpected bad_block(std::string_view list, std::size_t index, const side& s, std::string_view why) {
  return fail(errc::transport_region, fmt::format("{}[{}]: {} region {}, offset {}, {} bytes: {}", list,
                                                  index, s.name, s.region.value, s.offset, s.bytes, why));
}

template <class Regions>
expected<void> check_side(std::string_view list, std::size_t index, const side& s, const Regions& regions) {
  if (s.region.value >= regions.size())
    return bad_block(list, index, s, fmt::format("there are {} regions", regions.size()));
  const std::uint64_t size = regions[s.region.value].bytes;
  if (!within(s.offset, s.bytes, size))
    return bad_block(list, index, s, fmt::format("the region ends at {}", size));
  return {};
}

}  // namespace

expected<void> check_region(const memory_region& region) {
  if (region.base == nullptr || region.bytes == 0)
    return fail(errc::transport_region, "a region needs an address and at least one byte");
  const auto base = reinterpret_cast<std::uintptr_t>(region.base);
  if (!within(base, region.bytes, std::uint64_t{0} - 1))
    return fail(
        errc::transport_region,
        fmt::format("a region of {} bytes at {:#x} ends beyond the address space", region.bytes, base));
  return {};
}

expected<void> check_blocks(std::span<const block> blocks, std::span<const memory_region> local,
                            std::span<const remote_region> remote, std::string_view list) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const block& b = blocks[i];
    const side here{"local", b.local, b.local_offset, b.bytes};
    const side there{"remote", b.remote, b.remote_offset, b.bytes};
    if (auto ok = check_side(list, i, here, local); !ok) return ok;
    if (auto ok = check_side(list, i, there, remote); !ok) return ok;
    if (!within(remote[b.remote.value].base, b.remote_offset + b.bytes, std::uint64_t{0} - 1))
      return bad_block(list, i, there, "base + offset + bytes wraps");
  }
  return {};
}

expected<void> check_transfer(const transfer& t, std::span<const memory_region> local,
                              std::span<const remote_region> remote) {
  if (auto ok = check_blocks(t.blocks, local, remote, "blocks"); !ok) return ok;
  if (auto ok = check_blocks(t.last_blocks, local, remote, "last_blocks"); !ok) return ok;
  return t.notify ? check_frame(*t.notify) : expected<void>{};
}

expected<void> check_frame(const outgoing_frame& frame) {
  constexpr std::size_t payload_max = limits::frame_bytes - wire::header_bytes;
  if (frame.payload.size() > payload_max)
    return fail(errc::wire_too_large, fmt::format("frame {}: a payload of {} bytes; at most {} fit",
                                                  to_string(frame.type), frame.payload.size(), payload_max));
  return {};
}

expected<void> check_endpoint(const endpoint_record& remote, std::string_view provider) {
  if (remote.provider != provider)
    return fail(errc::transport_provider,
                fmt::format("the peer's endpoint is of provider {}, ours is {}", remote.provider, provider));
  if (remote.protocol < limits::protocol_min || remote.protocol > limits::protocol_max)
    return fail(errc::wire_version, fmt::format("the peer's endpoint speaks protocol {}, we speak {} to {}",
                                                remote.protocol, limits::protocol_min, limits::protocol_max));
  if (remote.probe.bytes != probe_bytes)
    return fail(errc::wire_malformed, fmt::format("the peer's probe region has {} bytes instead of {}",
                                                  remote.probe.bytes, probe_bytes));
  if (remote.regions.size() > limits::layout_buffers)
    return fail(errc::wire_too_large, fmt::format("the peer shows {} regions; at most {} are taken",
                                                  remote.regions.size(), limits::layout_buffers));
  return {};
}

}  // namespace handoff::transport
