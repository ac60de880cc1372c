#include "tools/replay/page_oracle.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

constexpr std::uint64_t seed = 3;
constexpr std::uint32_t page_tokens = 16;
constexpr std::uint64_t pool_pages = 12, buffers = 4, bytes_per_token = 24;

page_oracle make_oracle(pool_side side) {
  layout_descriptor layout;
  layout.components = {{component_kind::kv, "kv", page_tokens, pool_pages}};
  for (std::uint32_t i = 0; i < buffers; ++i) {
    buffer_layout buffer;
    buffer.layer = i / 2;
    buffer.kind = i % 2 ? buffer_kind::value : buffer_kind::key;
    buffer.page_tokens = page_tokens;
    buffer.pages = pool_pages;
    buffer.item_bytes = page_tokens * bytes_per_token;
    layout.buffers.push_back(buffer);
  }
  auto memory = pool_memory::create(layout);
  REQUIRE(memory);
  page_oracle oracle(std::move(*memory), seed, side);
  for (std::uint64_t item = 0; item < oracle.items(pool_pages); ++item) oracle.poison(item);
  return oracle;
}

/// Both sides of two rooms, and what a transport would do between them.
struct scene {
  page_oracle source = make_oracle(pool_side::source), sink = make_oracle(pool_side::sink);
  page_allocator source_pages{pool_pages, 1}, sink_pages{pool_pages, 2};

  room_pages place(page_oracle& oracle, page_allocator& pages, std::uint64_t room, std::uint64_t tokens) {
    auto ids = pages.allocate(oracle.pages_for(tokens), {room});
    REQUIRE(ids);
    return oracle.place({room}, tokens, *ids);
  }
  room_pages at_source(std::uint64_t room, std::uint64_t tokens) {
    auto r = place(source, source_pages, room, tokens);
    for (std::uint64_t item = 0; item < source.items(r.pages.size()); ++item) source.write(r, item);
    return r;
  }
  room_pages at_sink(std::uint64_t room, std::uint64_t tokens) {
    return place(sink, sink_pages, room, tokens);
  }

  std::uint32_t tokens_of(const room_pages& r, std::uint64_t page) const {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(page_tokens, r.tokens - page * page_tokens));
  }
  void move_item(const room_pages& from, const room_pages& to, std::uint64_t item) {
    const auto b = item % buffers, page = item / buffers;
    const auto bytes = source.memory().item(b, from.pages[page], tokens_of(from, page));
    std::copy(bytes.begin(), bytes.end(), sink.memory().item(b, to.pages[page]).begin());
  }
  void move(const room_pages& from, const room_pages& to) {
    for (std::uint64_t item = 0; item < sink.items(from.pages.size()); ++item) move_item(from, to, item);
  }
  page_oracle::verdict verify(const room_pages& r) {
    page_oracle::verdict sum;
    for (std::uint64_t item = 0; item < sink.items(r.pages.size()); ++item) {
      const auto v = sink.verify(r, item);
      sum.verified += v.verified;
      sum.wrong += v.wrong;
      if (v.first && !sum.first) {
        sum.first = v.first;
        sum.outside = v.outside;
        wrong_item = item;
      }
    }
    return sum;
  }
  std::string text(const room_pages& r, const page_oracle::verdict& v) {
    return sink.explain(r, wrong_item, *v.first, sink_pages);
  }
  std::uint64_t wrong_item = 0;
};

void check_contains(const std::string& text, std::string_view part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

}  // namespace

TEST_CASE("a room that was moved in full verifies, and the bytes verified are those it owns") {
  scene s;
  const auto from = s.at_source(0, 40), to = s.at_sink(0, 40);
  CHECK(to.pages.size() == 3);
  s.move(from, to);
  const auto v = s.verify(to);
  CHECK(v.verified == 40 * buffers * bytes_per_token);
  CHECK(v.wrong == 0);
  CHECK_FALSE(v.first);
}

TEST_CASE("a byte that changed on the way is named with room, layer, kind, page, token and both values") {
  scene s;
  const auto from = s.at_source(17, 40), to = s.at_sink(17, 40);
  s.move(from, to);
  auto& byte = s.sink.memory().item(3, to.pages[1])[5 * bytes_per_token + 2];
  const auto old = byte;
  byte ^= std::byte{0x81};
  const auto v = s.verify(to);
  CHECK(v.wrong == 1);
  REQUIRE(v.first);
  check_contains(
      s.text(to, v),
      fmt::format("room 17 layer 1 value page 1 (pool page {}) token 5 byte 2: expected {:#04x}, got "
                  "{:#04x}: 1 byte(s) differ, bytes of no known page",
                  to.pages[1].value, static_cast<unsigned>(old), static_cast<unsigned>(byte)));
}

TEST_CASE("a page that was not written shows its poison") {
  scene s;
  const auto from = s.at_source(1, 40), to = s.at_sink(1, 40);
  for (std::uint64_t item = 0; item < 12; ++item)
    if (item != 6) s.move_item(from, to, item);
  const auto v = s.verify(to);
  REQUIRE(v.first);
  check_contains(s.text(to, v), "room 1 layer 1 key page 1");
  check_contains(s.text(to, v), "poison: never written");
}

TEST_CASE("bytes of another room, page or layer are called by their name") {
  scene s;
  const auto from = s.at_source(1, 40), other = s.at_source(2, 40);
  const auto to = s.at_sink(1, 40), others = s.at_sink(2, 40);
  s.move(other, to);
  auto v = s.verify(to);
  REQUIRE(v.first);
  check_contains(s.text(to, v), "bytes of room 2 page 0");

  s.move(from, to);
  const auto wrong = s.source.memory().item(0, from.pages[1]);
  std::copy(wrong.begin(), wrong.end(), s.sink.memory().item(2, to.pages[0]).begin());
  v = s.verify(to);
  REQUIRE(v.first);
  check_contains(s.text(to, v), "bytes of room 1 page 1 layer 0 key");
  CHECK(others.pages.size() == 3);
}

TEST_CASE("bytes of the page's previous owner are called stale") {
  scene s;
  s.sink.age_all();
  const auto whole = pool_pages * page_tokens;
  const auto first = s.at_sink(8, whole);
  for (std::uint64_t item = 0; item < s.sink.items(first.pages.size()); ++item) s.sink.write(first, item);
  REQUIRE_FALSE(s.sink_pages.release(first.pages, {8}));
  const auto next = s.at_sink(9, 16);
  const auto v = s.verify(next);
  REQUIRE(v.first);
  check_contains(s.text(next, v), "stale: bytes of room 8 page");
}

TEST_CASE("bytes of before the run are called stale") {
  scene s;
  s.sink.age_all();
  const auto to = s.at_sink(9, 16);
  const auto v = s.verify(to);
  REQUIRE(v.first);
  check_contains(s.text(to, v), "stale: bytes from before this run");
}

TEST_CASE("the source's poison is recognized: pages were read too early or too late") {
  scene s;
  const auto from = s.at_source(4, 16), to = s.at_sink(4, 16);
  for (std::uint64_t item = 0; item < buffers; ++item) s.source.poison(from, item);
  s.move(from, to);
  const auto v = s.verify(to);
  REQUIRE(v.first);
  check_contains(s.text(to, v), "poison of the other side's pool page");
}

TEST_CASE("a byte behind the last token of a room's last page is seen") {
  scene s;
  const auto from = s.at_source(1, 20), to = s.at_sink(1, 20);
  s.move(from, to);
  s.sink.memory().item(1, to.pages[1])[4 * bytes_per_token] ^= std::byte{1};
  const auto v = s.verify(to);
  CHECK(v.wrong == 1);
  CHECK(v.outside);
  REQUIRE(v.first);
  CHECK(v.first->first == 4 * bytes_per_token);
}

TEST_CASE("a free page that was written is found, whether it is looked at as a page or given to a room") {
  scene s;
  const auto room = s.at_sink(1, 16);
  s.sink.memory().item(2, room.pages[0])[7] ^= std::byte{1};
  bool found = false;
  for (std::uint64_t item = 0; item < s.sink.items(pool_pages); ++item) {
    const auto difference = s.sink.verify_untouched(item);
    if (!difference) continue;
    CHECK_FALSE(found);
    found = true;
    check_contains(s.sink.explain(item, *difference, s.sink_pages), "free page of layer 1 key (pool page ");
  }
  CHECK(found);
  CHECK(s.sink.verify_untouched(room, 2));
  CHECK_FALSE(s.sink.verify_untouched(room, 1));
  s.sink.poison(room, 2);
  CHECK_FALSE(s.sink.verify_untouched(room, 2));
}
