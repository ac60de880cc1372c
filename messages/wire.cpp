#include "messages/wire.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace handoff::wire {
namespace {

constexpr std::size_t crc_offset = 20;

// Slicing by eight: table k holds the checksum of a byte that k zero bytes follow.
using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr crc_tables make_tables() {
  crc_tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    auto crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    t[0][i] = crc;
  }
  for (std::size_t k = 1; k < t.size(); ++k)
    for (std::size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
  return t;
}
constexpr crc_tables tables = make_tables();

// The header as bytes, with the checksum given.
void write_header(const header& h, std::uint32_t crc, std::byte* to) {
  auto put = [&to](std::uint64_t x, std::size_t width) {
    detail::store(x, to, width);
    to += width;
  };
  put(magic, 4);
  put(h.protocol, 2);
  put(static_cast<std::uint16_t>(h.type), 2);
  put(h.flags, 2);
  put(h.credits, 2);
  put(h.length, 4);
  put(h.session.value, 4);
  put(crc, 4);
  put(h.sequence, 8);
}

// Over the whole message, as if the checksum's own bytes were 0.
std::uint32_t message_crc(byte_span message) {
  std::array<std::byte, header_bytes> head;
  std::copy_n(message.begin(), header_bytes, head.begin());
  std::fill_n(head.begin() + crc_offset, 4, std::byte{0});
  return crc32c(message.subspan(header_bytes), crc32c(head));
}

}  // namespace

std::uint32_t crc32c(byte_span data, std::uint32_t seed) {
  auto crc = ~seed;
  const auto* at = data.data();
  auto size = data.size();
  for (; size >= 8; size -= 8, at += 8) {
    auto x = detail::load(at, 8) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][(x >> (8 * i)) & 0xff];
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xff];
  return ~crc;
}

void seal(header h, std::span<std::byte> message) {
  h.length = static_cast<std::uint32_t>(message.size() - header_bytes);
  write_header(h, 0, message.data());
  detail::store(message_crc(message), &message[crc_offset], 4);
}

expected<header> read_header(byte_span message, std::size_t max_payload) {
  if (message.size() < header_bytes)
    return fail(errc::wire_malformed,
                fmt::format("header: needs {} bytes, got {}", header_bytes, message.size()));
  const auto* at = message.data();
  auto get = [&at](std::size_t width) {
    auto x = detail::load(at, width);
    at += width;
    return x;
  };
  if (auto found = get(4); found != magic)
    return fail(
        errc::wire_malformed,
        fmt::format("header: magic is {:#010x} instead of {:#010x}; the sender is not a handoff engine",
                    found, magic));
  header h;
  h.protocol = static_cast<std::uint16_t>(get(2));
  h.type = static_cast<message_type>(get(2));
  h.flags = static_cast<std::uint16_t>(get(2));
  h.credits = static_cast<std::uint16_t>(get(2));
  h.length = static_cast<std::uint32_t>(get(4));
  h.session.value = static_cast<std::uint32_t>(get(4));
  at += 4;  // checksum
  h.sequence = get(8);
  // The greeting itself settles the version, so it and its refusal are read whatever version they carry.
  bool greets =
      h.type == message_type::hello || h.type == message_type::hello_ok || h.type == message_type::refusal;
  if (!greets && (h.protocol < limits::protocol_min || h.protocol > limits::protocol_max))
    return fail(errc::wire_version, fmt::format("header: protocol {}, this build speaks {} to {}", h.protocol,
                                                limits::protocol_min, limits::protocol_max));
  if (h.length > max_payload)
    return fail(errc::wire_too_large, fmt::format("{}: payload of {} bytes, at most {} are accepted here",
                                                  to_string(h.type), h.length, max_payload));
  return h;
}

expected<header> verify(byte_span message, std::size_t max_payload) {
  auto h = read_header(message, max_payload);
  if (!h) return h;
  if (auto payload = message.size() - header_bytes; h->length != payload)
    return fail(errc::wire_malformed, fmt::format("{}: header says {} payload bytes, {} came",
                                                  to_string(h->type), h->length, payload));
  auto sent = static_cast<std::uint32_t>(detail::load(&message[crc_offset], 4));
  if (auto found = message_crc(message); found != sent)
    return fail(errc::wire_malformed, fmt::format("{}: checksum is {:#010x}, the header says {:#010x}",
                                                  to_string(h->type), found, sent));
  return h;
}

namespace detail {

bool decoder::boolean(bool& x) {
  std::uint8_t number = 0;
  if (!integer(number)) return false;
  if (number > 1) return fail_value(number, 1, sizeof number);
  x = number == 1;
  return true;
}

bool decoder::text(std::string& x) {
  std::size_t size = 0;
  if (!count(size, limits::string_bytes, 1)) return false;
  x.assign(reinterpret_cast<const char*>(data_.data()) + at_, size);
  at_ += size;
  return true;
}

bool decoder::count(std::size_t& size, std::size_t limit, std::size_t element_bytes) {
  std::uint32_t number = 0;
  auto at = at_;
  if (!integer(number)) return false;
  if (number > left() / element_bytes)
    return fail(errc::wire_malformed,
                fmt::format("count {} exceeds the {} bytes that are left", number, left()), at);
  if (number > limit)
    return fail(errc::wire_too_large, fmt::format("count {} exceeds the limit of {}", number, limit), at);
  size = number;
  return true;
}

// Names the place, for example "publish.pages[3].runs".
std::string decoder::path() const {
  std::string names;
  for (const auto* s = path_; s; s = s->parent)
    names.insert(0, s->name ? fmt::format(".{}", s->name) : fmt::format("[{}]", s->index));
  return (root_ ? root_ : "message") + names;
}

bool decoder::fail(errc code, const std::string& what, std::size_t at) {
  error_ = {code, fmt::format("{}: {}, at byte {}", path(), what, at), {}};
  return false;
}

bool decoder::fail_short(std::size_t needed) {
  return fail(errc::wire_malformed, fmt::format("needs {} bytes, {} are left", needed, left()), at_);
}

bool decoder::fail_value(std::uint64_t number, std::uint64_t last, std::size_t width) {
  return fail(errc::wire_malformed, fmt::format("value {} is out of range, the last is {}", number, last),
              at_ - width);
}

bool decoder::fail_nesting() {
  return fail(errc::wire_too_large, fmt::format("structs nest deeper than the limit of {}", limits::nesting),
              at_);
}

bool decoder::fail_limits(const error& e) {
  error_ = {e.code, fmt::format("{}.{}", path(), e.detail), {}};
  return false;
}

}  // namespace detail
}  // namespace handoff::wire
