#include "messages/metadata_row.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace handoff {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are little-endian in memory");

template <class T>
void put(std::span<std::byte> memory, std::size_t field, T value) {
  std::memcpy(memory.data() + row_schema::fields[field].offset, &value, sizeof value);
}

template <class T>
T get(std::span<const std::byte> memory, std::size_t field) {
  T value;
  std::memcpy(&value, memory.data() + row_schema::fields[field].offset, sizeof value);
  return value;
}

}  // namespace

void write_row(std::span<std::byte> memory, const metadata_row& row, room_key stamp) {
  std::memset(memory.data(), 0, memory.size());
  put(memory, 0, row.first_token);
  put(memory, 1, row.cached_tokens);
  put(memory, 2, row.cached_device);
  put(memory, 3, row.cached_host);
  put(memory, 4, row.cached_storage);
  put(memory, 5, stamp.room.value);
  put(memory, 6, stamp.attempt.value);
  put(memory, 7, row_schema::stamp_mark);
}

expected<metadata_row> read_row(std::span<const std::byte> memory, room_key expected_stamp) {
  if (get<std::uint32_t>(memory, 7) != row_schema::stamp_mark)
    return fail(errc::metadata_missing,
                fmt::format("the metadata row of {} has not landed", to_string(expected_stamp)));
  room_key stamp{{get<std::uint64_t>(memory, 5)}, {get<std::uint32_t>(memory, 6)}};
  if (stamp != expected_stamp)
    return fail(errc::metadata_mismatch, fmt::format("the metadata row of {} carries the stamp of {}",
                                                     to_string(expected_stamp), to_string(stamp)));
  metadata_row row;
  row.first_token = get<std::int32_t>(memory, 0);
  row.cached_tokens = get<std::uint32_t>(memory, 1);
  row.cached_device = get<std::uint32_t>(memory, 2);
  row.cached_host = get<std::uint32_t>(memory, 3);
  row.cached_storage = get<std::uint32_t>(memory, 4);
  return row;
}

void clear_stamp(std::span<std::byte> memory) {
  const auto& first = row_schema::fields[5];
  std::memset(memory.data() + first.offset, 0, row_schema::row_bytes - first.offset);
}

}  // namespace handoff
