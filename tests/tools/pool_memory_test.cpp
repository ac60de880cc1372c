#include "tools/replay/pool_memory.hpp"

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

layout_descriptor small_layout() {
  layout_descriptor layout;
  layout.components = {{component_kind::kv, "kv", 16, 5}};
  for (std::uint32_t i = 0; i < 4; ++i) {
    buffer_layout buffer;
    buffer.layer = i / 2;
    buffer.kind = i % 2 ? buffer_kind::value : buffer_kind::key;
    buffer.page_tokens = 16;
    buffer.pages = 5;
    buffer.item_bytes = 16 * 24;
    layout.buffers.push_back(buffer);
  }
  return layout;
}

}  // namespace

TEST_CASE("items lie one behind the other and the description names their buffers") {
  const auto memory = pool_memory::create(small_layout());
  REQUIRE(memory);
  const auto pool = memory->describe();
  CHECK(pool.name == "kv");
  CHECK(pool.page_tokens == 16);
  CHECK(pool.pages == 5);
  REQUIRE(pool.buffers.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(pool.buffers[i].layout == memory->buffers()[i]);
    CHECK(memory->item(i, {3}).data() == pool.buffers[i].base + 3 * 16 * 24);
    CHECK(memory->item(i, {3}).size() == 16 * 24);
    CHECK(memory->item(i, {3}, 2).size() == 2 * 24);
  }
}

TEST_CASE("writing every byte of the pool leaves the canaries alone, one byte outside breaks them") {
  const auto memory = pool_memory::create(small_layout());
  REQUIRE(memory);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::uint32_t page = 0; page < 5; ++page)
      for (auto& b : memory->item(i, {page})) b = std::byte{0xff};
  CHECK_FALSE(memory->broken_canary());

  auto* before = memory->item(3, {0}).data() - 1;
  const auto old = *before;
  *before ^= std::byte{1};
  CHECK(memory->broken_canary() ==
        "layer 1 value: a canary was overwritten 1 bytes before the start of the buffer");
  *before = old;
  CHECK_FALSE(memory->broken_canary());
  memory->item(1, {4}).data()[16 * 24 + 10] ^= std::byte{1};
  CHECK(memory->broken_canary() ==
        "layer 0 value: a canary was overwritten 10 bytes behind the end of the buffer");
}

TEST_CASE("a layout that cannot carry the pattern or does not fit is refused by name") {
  auto odd = small_layout();
  odd.buffers[2].item_bytes = 16 * 12;
  const auto refused = pool_memory::create(odd);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_argument);
  CHECK(refused.error().detail.find("layer 1 key: 12 bytes per token") != std::string::npos);

  auto vast = small_layout();
  vast.buffers[0].pages = 1ull << 50;
  const auto too_big = pool_memory::create(vast);
  REQUIRE_FALSE(too_big);
  CHECK(too_big.error().code == errc::io);
  CHECK(too_big.error().detail.find("no memory for layer 0 key") != std::string::npos);
}
