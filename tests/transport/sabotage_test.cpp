#include "transport/sabotage.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <doctest/doctest.h>

namespace handoff::transport {
namespace {

/// Copies blocks from its one local region to memory that stands for the peer's.
class copying_transport final : public transport {
 public:
  std::vector<std::byte> source = std::vector<std::byte>(1024), target = std::vector<std::byte>(1024);
  std::vector<transfer> taken;
  std::vector<std::string> calls;

  copying_transport() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  std::vector<std::string> providers() const override { return {"copying"}; }
  expected<region_id> register_region(memory_region) override { return region_id{0}; }
  expected<void> unregister_region(region_id) override { return {}; }
  expected<endpoint_record> open_peer(peer_id, session_id, const std::string&) override {
    return endpoint_record{};
  }
  expected<void> connect_peer(peer_id, const endpoint_record&) override { return {}; }
  expected<void> submit(transfer t) override {
    for (const auto& b : t.blocks)
      std::memcpy(target.data() + b.remote_offset, source.data() + b.local_offset, b.bytes);
    taken.push_back(std::move(t));
    calls.emplace_back("submit");
    return {};
  }
  expected<void> send_frame(peer_id, outgoing_frame) override { return {}; }
  void fence(peer_id) override { calls.emplace_back("fence"); }
  void close_peer(peer_id) override { calls.emplace_back("close_peer"); }
  status current_status() const override { return {}; }
  void close() override {}
};

/// Room `n` writes four blocks of 16 bytes, one after the other, to the same places.
transfer room(std::uint64_t n, bool notify = true) {
  transfer t;
  t.id = {n};
  t.peer = {1};
  for (std::uint64_t i = 0; i < 4; ++i) t.blocks.push_back({{0}, n * 64 + i * 16, {0}, n * 64 + i * 16, 16});
  t.last_blocks.push_back({{0}, 1000, {0}, 1000, 8});
  if (notify) t.notify = outgoing_frame{message_type::room_done, {}, false};
  return t;
}

struct scene {
  copying_transport* inner;
  sabotage_transport outer;

  explicit scene(sabotage_kind kind, std::uint64_t seed = 0) : scene(kind, seed, new copying_transport) {}
  scene(sabotage_kind kind, std::uint64_t seed, copying_transport* copying)
      : inner(copying), outer(std::unique_ptr<transport>(copying), kind, seed) {
    REQUIRE(outer.register_region({inner->source.data(), inner->source.size(), memory_kind::host}));
  }

  /// The rooms whose 64 bytes are not what was sent.
  std::vector<std::uint64_t> wrong(std::uint64_t rooms) const {
    std::vector<std::uint64_t> result;
    for (std::uint64_t n = 0; n < rooms; ++n)
      if (std::memcmp(inner->source.data() + n * 64, inner->target.data() + n * 64, 64) != 0)
        result.push_back(n);
    return result;
  }
  std::uint64_t wrong_bytes(std::uint64_t n) const {
    std::uint64_t count = 0;
    for (std::uint64_t i = n * 64; i < n * 64 + 64; ++i) count += inner->source[i] != inner->target[i];
    return count;
  }
};

constexpr std::uint64_t passed = sabotage_transport::passed_min;

}  // namespace

TEST_CASE("sabotage kinds are named as on the command line") {
  for (auto value = 0; value <= static_cast<int>(last_enumerator(sabotage_kind{})); ++value) {
    const auto kind = static_cast<sabotage_kind>(value);
    CHECK(parse_sabotage_kind(to_string(kind)) == kind);
  }
  const auto unknown = parse_sabotage_kind("fire");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == errc::invalid_argument);
  CHECK(unknown.error().detail.find("'fire'") != std::string::npos);
  CHECK(unknown.error().detail.find("drop-room-done") != std::string::npos);
}

TEST_CASE("kinds that do not concern the transport change nothing") {
  for (const auto kind : {sabotage_kind::none, sabotage_kind::leak_lease}) {
    scene s(kind);
    for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
    CHECK(s.wrong(15).empty());
    for (const auto& t : s.inner->taken) CHECK(t.notify);
  }
}

TEST_CASE("flip-byte changes one byte of one transfer") {
  scene s(sabotage_kind::flip_byte);
  for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.wrong(15) == std::vector<std::uint64_t>{passed});
  CHECK(s.wrong_bytes(passed) == 1);
  const auto& blocks = s.inner->taken[passed].blocks;
  CHECK(std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                        [](auto sum, const auto& b) { return sum + b.bytes; }) == 64);
}

TEST_CASE("flip-byte waits for a block whose bytes are not all the same") {
  scene s(sabotage_kind::flip_byte);
  std::fill_n(s.inner->source.begin() + passed * 64, 64, std::byte{5});
  for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.wrong(15) == std::vector<std::uint64_t>{passed + 1});
}

TEST_CASE("skip-page and stale-page leave one block unwritten") {
  for (const auto kind : {sabotage_kind::skip_page, sabotage_kind::stale_page}) {
    scene s(kind);
    for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
    CHECK(s.wrong(15) == std::vector<std::uint64_t>{passed});
    CHECK(s.inner->taken[passed].blocks.size() == 3);
  }
}

TEST_CASE("swap-rooms exchanges the places of two rooms, the held one goes out first") {
  scene s(sabotage_kind::swap_rooms);
  for (std::uint64_t n = 0; n <= passed; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.inner->taken.size() == passed);
  // What does not end a room passes a held transfer.
  REQUIRE(s.outer.submit(room(14, false)));
  CHECK(s.inner->taken.size() == passed + 1);
  for (std::uint64_t n = passed + 1; n < 10; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.wrong(10) == std::vector<std::uint64_t>{passed, passed + 1});
  CHECK(s.inner->taken[passed + 1].id.value == passed);
  CHECK(std::memcmp(s.inner->target.data() + passed * 64, s.inner->source.data() + (passed + 1) * 64, 64) ==
        0);
}

TEST_CASE("swap-rooms goes on looking when two rooms have no block of the same size") {
  scene s(sabotage_kind::swap_rooms);
  for (std::uint64_t n = 0; n < passed; ++n) REQUIRE(s.outer.submit(room(n)));
  auto odd = room(passed);
  for (auto& b : odd.blocks) b.bytes = 15;
  REQUIRE(s.outer.submit(odd));
  for (std::uint64_t n = passed + 1; n < 10; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.wrong_bytes(passed + 2) == 64);
  CHECK(s.wrong_bytes(passed + 3) == 64);
}

TEST_CASE("a held transfer goes out before its peer is fenced or closed") {
  for (const bool fenced : {true, false}) {
    scene s(sabotage_kind::swap_rooms);
    for (std::uint64_t n = 0; n <= passed; ++n) REQUIRE(s.outer.submit(room(n)));
    if (fenced)
      s.outer.fence({1});
    else
      s.outer.close_peer({1});
    REQUIRE(s.inner->calls.size() == passed + 2);
    CHECK(s.inner->calls[passed] == "submit");
    CHECK(s.inner->calls[passed + 1] == (fenced ? "fence" : "close_peer"));
  }
}

TEST_CASE("drop-room-done loses one notice and writes everything") {
  scene s(sabotage_kind::drop_room_done);
  for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
  CHECK(s.wrong(15).empty());
  for (std::uint64_t n = 0; n < 15; ++n) CHECK(s.inner->taken[n].notify.has_value() == (n != passed));
}

TEST_CASE("the seed chooses the transfer, within the bounds that are told") {
  std::array<bool, 16> hit{};
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    scene s(sabotage_kind::skip_page, seed);
    for (std::uint64_t n = 0; n < 15; ++n) REQUIRE(s.outer.submit(room(n)));
    const auto wrong = s.wrong(15);
    REQUIRE(wrong.size() == 1);
    CHECK(wrong[0] >= sabotage_transport::passed_min);
    CHECK(wrong[0] <= sabotage_transport::passed_max);
    hit[wrong[0]] = true;
  }
  CHECK(std::count(hit.begin(), hit.end(), true) ==
        sabotage_transport::passed_max - sabotage_transport::passed_min + 1);
}

}  // namespace handoff::transport
