// The wire codec: one encoding for frames over libfabric and messages on control connections.
//
// A message is a 32-byte header and a payload, little-endian, fixed width:
//
//   0 magic u32 | 4 protocol u16 | 6 type u16 | 8 flags u16 | 10 credits u16 | 12 length u32 (payload)
//   16 session u32 | 20 crc32c u32 (header with this field 0, then payload) | 24 sequence u64
//
// Payload: fields in declared order. Integers and enums fixed width, bool one byte (0 or 1), strings and
// lists a u32 count first, structs a u32 byte length first unless `wire_frozen`. Growth: new fields only at
// the end; a shorter struct gets defaults, what is longer is skipped. Nothing is allocated before its length
// was checked against messages/limits.hpp and against the bytes that are there. No exceptions; thread-safe
// (no state).
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/limits.hpp"
#include "messages/message_type.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace handoff::wire {

inline constexpr std::uint32_t magic = 0x46444e48;  // "HNDF"
inline constexpr std::size_t header_bytes = 32;

struct header {
  std::uint16_t protocol = 1;
  message_type type = message_type::none;
  std::uint16_t flags = 0;
  std::uint16_t credits = 0;  ///< receive buffers given back to the other side
  std::uint32_t length = 0;   ///< payload bytes
  session_id session;
  std::uint64_t sequence = 0;  ///< per session and direction, from 1
  friend bool operator==(const header&, const header&) = default;
};

using bytes = std::vector<std::byte>;
using byte_span = std::span<const std::byte>;

/// CRC-32C (Castagnoli). `seed` is the checksum of what stands before `data`.
std::uint32_t crc32c(byte_span data, std::uint32_t seed = 0);

/// Writes the header, length and checksum included, in front of a payload that is in place behind it.
/// @pre message.size() >= header_bytes
void seal(header h, std::span<std::byte> message);

/// Reads and checks magic, protocol range (hello, hello_ok and refusal have any) and `length <= max_payload`;
/// the checksum needs the payload: `verify`. Whether the type is known is for the receiver to judge: it
/// answers `wire_unsupported`.
expected<header> read_header(byte_span message, std::size_t max_payload);

/// Whole-message check: the length matches exactly and the checksum is right.
expected<header> verify(byte_span message, std::size_t max_payload);

/// Appends the payload of one message struct (anything with `inspect`).
template <class T>
void encode_payload(const T& message, bytes& out);

/// Decodes a payload; the error names message, field and byte offset.
template <class T>
expected<T> decode_payload(byte_span payload);

/// header + payload in one buffer; `h.type` and `h.length` are set here.
template <class T>
bytes encode(const T& message, header h = {});

}  // namespace handoff::wire

#include "messages/wire_codec.hpp"  // IWYU pragma: export
