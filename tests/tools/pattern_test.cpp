#include "tools/replay/pattern.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

constexpr std::uint64_t token_bytes = 48;

std::vector<std::byte> filled(const item_key& key, std::uint64_t tokens) {
  std::vector<std::byte> memory(tokens * token_bytes);
  fill(memory, key, token_bytes);
  return memory;
}

std::uint64_t word_at(const std::vector<std::byte>& memory, std::uint64_t offset) {
  std::uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | static_cast<std::uint64_t>(memory[offset + i]);
  return word;
}

}  // namespace

TEST_CASE("mixing is undone by unmixing") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const auto x = random();
    REQUIRE(unmix(mix(x)) == x);
  }
  CHECK(unmix(mix(0)) == 0);
}

TEST_CASE("what was filled verifies, and any single changed byte is found where it is") {
  const item_key key{{123}, 5, buffer_kind::value};
  auto memory = filled(key, 16);
  CHECK_FALSE(verify(memory, key, token_bytes));
  for (std::size_t at = 0; at < memory.size(); ++at) {
    const auto before = memory[at];
    memory[at] ^= std::byte{0x10};
    const auto found = verify(memory, key, token_bytes);
    REQUIRE(found);
    REQUIRE(found->wrong_bytes == 1);
    REQUIRE(found->first == at);
    REQUIRE(found->expected == before);
    REQUIRE(found->got == memory[at]);
    memory[at] = before;
  }
}

TEST_CASE("every part of the place changes the bytes") {
  const auto contents = room_contents(1, {{0}, {1}}, 2);
  const std::vector<item_key> keys{
      {contents[0], 0, buffer_kind::key},
      {contents[1], 0, buffer_kind::key},
      {contents[0], 1, buffer_kind::key},
      {contents[0], 0, buffer_kind::value},
      {room_contents(2, {{0}, {1}}, 1)[0], 0, buffer_kind::key},
      {room_contents(1, {{1}, {1}}, 1)[0], 0, buffer_kind::key},
      {room_contents(1, {{0}, {2}}, 1)[0], 0, buffer_kind::key},
      {poison_content(1, pool_side::source, {0}), 0, buffer_kind::key},
      {poison_content(1, pool_side::sink, {0}), 0, buffer_kind::key},
      {poison_content(1, pool_side::sink, {1}), 0, buffer_kind::key},
  };
  std::set<std::uint64_t> words;
  for (const auto& key : keys) {
    const auto memory = filled(key, 64);
    for (std::uint64_t offset = 0; offset < memory.size(); offset += 8) words.insert(word_at(memory, offset));
  }
  CHECK(words.size() == keys.size() * 64 * token_bytes / 8);
}

TEST_CASE("a page's bytes look random: every byte value occurs about equally often") {
  const auto memory = filled({{99}, 3, buffer_kind::key}, 4096);
  std::array<std::uint64_t, 256> counts{};
  for (const auto b : memory) ++counts[static_cast<std::size_t>(b)];
  const auto mean = memory.size() / 256;
  for (const auto count : counts) {
    CHECK(count > mean * 7 / 10);
    CHECK(count < mean * 13 / 10);
  }
}

TEST_CASE("a room's pages continue a chain: the same ids whatever the number of pages") {
  const auto few = room_contents(5, {{17}, {1}}, 3), many = room_contents(5, {{17}, {1}}, 10);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
}

TEST_CASE("all bytes of a wrong page are counted") {
  auto memory = filled({{1}, 0, buffer_kind::key}, 8);
  const auto other = filled({{2}, 0, buffer_kind::key}, 8);
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) differing += memory[i] != other[i];
  const auto found = verify(other, {{1}, 0, buffer_kind::key}, token_bytes);
  REQUIRE(found);
  CHECK(found->wrong_bytes == differing);
}

TEST_CASE("wrong bytes tell whose they are") {
  constexpr std::uint64_t seed = 42;
  std::vector<buffer_layout> buffers(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    buffers[i].layer = i / 2;
    buffers[i].kind = i % 2 ? buffer_kind::value : buffer_kind::key;
    buffers[i].page_tokens = 16;
  }
  content_index index;
  index.add_room(seed, {{0}, {1}}, 4);
  index.add_room(seed, {{17}, {1}}, 4);
  index.add_poison(seed, pool_side::source, 8);
  index.add_poison(seed, pool_side::sink, 8);

  const auto look_up = [&](const item_key& key, std::uint64_t token, std::uint64_t offset) {
    return index.find(word_at(filled(key, 16), token * token_bytes + offset), offset, buffers);
  };
  const auto stranger = look_up({room_contents(seed, {{17}, {1}}, 4)[3], 1, buffer_kind::value}, 9, 40);
  REQUIRE(stranger);
  CHECK(stranger->who.room == room_id{17});
  CHECK(stranger->who.page == 3);
  CHECK(stranger->layer == 1);
  CHECK(stranger->kind == buffer_kind::value);
  CHECK(stranger->token == 9);

  const auto zero = look_up({room_contents(seed, {{0}, {1}}, 1)[0], 0, buffer_kind::key}, 0, 0);
  REQUIRE(zero);
  CHECK(zero->who.room == room_id{0});

  const auto poison = look_up({poison_content(seed, pool_side::sink, {5}), 0, buffer_kind::key}, 2, 8);
  REQUIRE(poison);
  CHECK_FALSE(poison->who.room);
  CHECK(poison->who.side == pool_side::sink);
  CHECK(poison->who.page == 5);

  CHECK_FALSE(index.find(0, 0, buffers));
  CHECK_FALSE(look_up({room_contents(seed, {{18}, {1}}, 1)[0], 0, buffer_kind::key}, 0, 0));
}
