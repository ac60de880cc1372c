// The metadata row of a room: what the decode side needs beside KV and state. One row per slot in registered
// memory, written by one write after KV and state were flushed. The row is a schema of (field, offset,
// bytes), little-endian; both sides agree on the schema's name in the compatibility record. The stamp (room,
// attempt, mark) is what proves that the row landed: a row without its room's stamp has not, whatever its
// other bytes are; `mark` makes room 0 work.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace handoff {

/// The row as engines fill and read it.
struct metadata_row {
  std::int32_t first_token = 0;  ///< sampled by prefill
  std::uint32_t cached_tokens = 0, cached_device = 0, cached_host = 0, cached_storage = 0;
  friend bool operator==(const metadata_row&, const metadata_row&) = default;
};

struct row_field {
  std::string_view name;
  std::uint32_t offset, bytes;
};

namespace row_schema {
inline constexpr std::string_view name = "handoff/1";
inline constexpr std::uint32_t row_bytes = 64;
inline constexpr std::uint32_t stamp_mark = 0x4b564f4b;  // "KVOK"
inline constexpr std::array<row_field, 8> fields{{{"first_token", 0, 4},
                                                  {"cached_tokens", 4, 4},
                                                  {"cached_device", 8, 4},
                                                  {"cached_host", 12, 4},
                                                  {"cached_storage", 16, 4},
                                                  {"stamp_room", 48, 8},
                                                  {"stamp_attempt", 56, 4},
                                                  {"stamp_mark", 60, 4}}};
}  // namespace row_schema

/// @pre memory.size() == row_schema::row_bytes, for each of these
void write_row(std::span<std::byte> memory, const metadata_row& row, room_key stamp);
/// metadata_missing: no stamp; metadata_mismatch: another room's or attempt's stamp, both named.
expected<metadata_row> read_row(std::span<const std::byte> memory, room_key expected_stamp);
void clear_stamp(std::span<std::byte> memory);

}  // namespace handoff
