#include "tools/replay/pattern.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace handoff::replay {
namespace {

// Odd constants with their bits spread: multiples of one never meet multiples of another in a run's ranges.
constexpr std::uint64_t word_step = 0x9e3779b97f4a7c15, layer_step = 0xd1b54a32d192ed03,
                        kind_step = 0xaef17502108ef2d9, token_step = 0xf1357aea2e62a9c5,
                        page_step = 0x8cb92ba72f3d8dd7, word_factor = 0xff51afd7ed558ccd;

/// x * inverse(x) == 1 modulo 2^64, by Newton's iteration.
constexpr std::uint64_t inverse(std::uint64_t x) {
  std::uint64_t y = x;
  for (int i = 0; i < 6; ++i) y *= 2 - x * y;
  return y;
}

constexpr std::uint64_t unshift(std::uint64_t x, int bits) {
  std::uint64_t y = x;
  for (int done = bits; done < 64; done += bits) y = x ^ (y >> bits);
  return y;
}

/// Word `index` of a token: light, because all bytes of a run pass through it, yet every byte depends on all.
constexpr std::uint64_t word_of(std::uint64_t token, std::uint64_t index) {
  std::uint64_t x = token + index * word_step;
  x ^= x >> 32;
  x *= word_factor;
  return x ^ (x >> 29);
}

constexpr std::uint64_t token_of_word(std::uint64_t word, std::uint64_t index) {
  std::uint64_t x = unshift(word, 29);
  x *= inverse(word_factor);
  return unshift(x, 32) - index * word_step;
}

std::uint64_t place_sum(std::uint32_t layer, buffer_kind kind, std::uint64_t token) {
  return layer * layer_step + static_cast<std::uint64_t>(kind) * kind_step + token * token_step;
}

std::uint64_t token_seed(const item_key& key, std::uint64_t token) {
  return mix(key.content.value + place_sum(key.layer, key.kind, token));
}

std::uint64_t little(std::uint64_t x) {
  static_assert(std::endian::native == std::endian::little, "the pattern is defined little-endian");
  return x;
}

/// The slow way, once a token is known to differ.
void describe(std::span<const std::byte> token, std::uint64_t seed, std::uint64_t offset, difference& out) {
  for (std::uint64_t i = 0; i < token.size(); i += 8) {
    std::uint64_t got = 0;
    std::memcpy(&got, token.data() + i, 8);
    const auto wanted = little(word_of(seed, i / 8));
    if (got == wanted) continue;
    const auto wanted_bytes = std::bit_cast<std::array<std::byte, 8>>(wanted);
    for (std::uint64_t b = 0; b < 8; ++b) {
      if (token[i + b] == wanted_bytes[b]) continue;
      if (out.wrong_bytes++ > 0) continue;
      out.first = offset + i + b;
      out.expected = wanted_bytes[b];
      out.got = token[i + b];
      out.got_word = got;
    }
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t unmix(std::uint64_t x) {
  x = unshift(x, 31) * inverse(0x94d049bb133111eb);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9);
  return unshift(x, 30);
}

std::vector<content_id> room_contents(std::uint64_t seed, room_key key, std::uint64_t pages) {
  std::vector<content_id> contents(pages);
  std::uint64_t chain = mix(mix(mix(seed) + key.room.value) + key.attempt.value);
  for (auto& content : contents) {
    chain = mix(chain + page_step);
    content.value = chain;
  }
  return contents;
}

content_id poison_content(std::uint64_t seed, pool_side side, page_id page) {
  const std::uint64_t tag = side == pool_side::source ? 0x50534f5552434531 : 0x5053494e4b504732;
  return {mix(mix(seed ^ tag) + page.value * page_step)};
}

void fill(std::span<std::byte> memory, const item_key& key, std::uint64_t token_bytes,
          std::uint64_t first_token) {
  const auto words = token_bytes / 8;
  auto* out = memory.data();
  for (std::uint64_t token = 0; token < memory.size() / token_bytes; ++token) {
    const auto seed = token_seed(key, first_token + token);
    for (std::uint64_t i = 0; i < words; ++i, out += 8) {
      const auto word = little(word_of(seed, i));
      std::memcpy(out, &word, 8);
    }
  }
}

std::optional<difference> verify(std::span<const std::byte> memory, const item_key& key,
                                 std::uint64_t token_bytes, std::uint64_t first_token) {
  const auto words = token_bytes / 8;
  difference result;
  const auto* in = memory.data();
  for (std::uint64_t token = 0; token < memory.size() / token_bytes; ++token, in += token_bytes) {
    const auto seed = token_seed(key, first_token + token);
    std::uint64_t differing = 0;
    for (std::uint64_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, in + i * 8, 8);
      differing |= word ^ little(word_of(seed, i));
    }
    if (differing != 0) describe({in, token_bytes}, seed, token * token_bytes, result);
  }
  if (result.wrong_bytes == 0) return std::nullopt;
  return result;
}

void content_index::add_room(std::uint64_t seed, room_key key, std::uint64_t pages) {
  const auto contents = room_contents(seed, key, pages);
  for (std::uint64_t i = 0; i < pages; ++i)
    owners_.emplace(contents[i].value, owner{key.room, pool_side::sink, i});
}

void content_index::add_poison(std::uint64_t seed, pool_side side, std::uint64_t pages) {
  for (std::uint64_t i = 0; i < pages; ++i) {
    const page_id page{static_cast<std::uint32_t>(i)};
    owners_.emplace(poison_content(seed, side, page).value, owner{std::nullopt, side, i});
  }
}

std::optional<content_index::found> content_index::find(std::uint64_t word, std::uint64_t offset_in_token,
                                                        std::span<const buffer_layout> buffers) const {
  const auto sum = unmix(token_of_word(little(word), offset_in_token / 8));
  for (const auto& buffer : buffers) {
    for (std::uint32_t token = 0; token < buffer.page_tokens; ++token) {
      const auto it = owners_.find(sum - place_sum(buffer.layer, buffer.kind, token));
      if (it != owners_.end()) return found{it->second, buffer.layer, buffer.kind, token};
    }
  }
  return std::nullopt;
}

}  // namespace handoff::replay
