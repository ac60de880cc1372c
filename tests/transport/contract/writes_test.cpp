// Bytes: where they land, in which order, and that nothing else changes.
#include "tests/transport/contract/scene.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;

namespace {

constexpr std::uint64_t mib = 1 << 20;

/// Pieces of 0 to 300 bytes in random places on both sides, with at least a byte between two of them.
std::vector<block> scattered(std::size_t count, std::mt19937_64& random) {
  std::vector<std::uint64_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<block> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back(copy(400 * order[i], 400 * i + 50, random() % 301));
  return blocks;
}

void check_scattered(scene& s, std::size_t from, std::size_t to, const std::vector<block>& blocks) {
  std::size_t wrong = 0, dirty = 0;
  for (const block& b : blocks) {
    const auto source = s.memory(from).subspan(b.local_offset, b.bytes);
    const auto target = s.memory(to).subspan(b.remote_offset - 50, 400);
    wrong += !std::ranges::equal(source, target.subspan(50, b.bytes));
    dirty += !all_are(target.first(50), canary) || !all_are(target.subspan(50 + b.bytes), canary);
  }
  CHECK(wrong == 0);
  CHECK(dirty == 0);
}

}  // namespace

// Catches: off-by-one at the limits of inject, eager, message and split sizes, and a write at a wrong offset.
TEST_CASE("every size arrives whole and touches nothing around it") {
  scene s;
  s.connect(0, 1);
  std::uint64_t seed = 0;
  for (std::uint64_t n :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{8}, std::uint64_t{63},
        std::uint64_t{64}, std::uint64_t{511}, std::uint64_t{512}, std::uint64_t{513}, std::uint64_t{4095},
        std::uint64_t{4096}, std::uint64_t{4097}, std::uint64_t{65535}, std::uint64_t{65536},
        std::uint64_t{65537}, mib - 1, mib, mib + 1}) {
    INFO("size " << n);
    const auto source = s.memory(0).subspan(77, n);
    fill(source, ++seed);
    std::ranges::fill(s.memory(1), canary);
    const auto end = s.deliver(0, 1, {copy(77, 4099, n)});
    CHECK(end.writes == (n + mib - 1) / mib);
    CHECK(first_difference(s.memory(1).subspan(4099, n), seed) == n);
    CHECK(all_are(s.memory(1).first(4099), canary));
    CHECK(all_are(s.memory(1).subspan(4099 + n), canary));
  }
}

// Catches: blocks lost, merged or swapped when many are posted, and empty blocks that upset the count.
TEST_CASE("many scattered blocks land each in its place") {
  scene s;
  s.connect(0, 1);
  std::mt19937_64 random(7);
  fill(s.memory(0), 1);
  std::ranges::fill(s.memory(1), canary);
  const auto blocks = scattered(5000, random);
  s.deliver(0, 1, blocks);
  check_scattered(s, 0, 1, blocks);
}

// Catches: state that is shared between the directions of a pair, and starvation of one by the other.
TEST_CASE("both directions at once deliver everything") {
  scene s;
  s.connect(0, 1);
  std::mt19937_64 random(8);
  const std::uint64_t half = s.memory(0).size() / 2;
  for (std::size_t i : {0, 1}) {
    fill(s.memory(i).first(half), 10 + i);
    std::ranges::fill(s.memory(i).subspan(half), canary);
  }
  std::vector<transfer_id> ids[2];
  for (int round = 0; round < 20; ++round)
    for (std::size_t i : {0, 1}) {
      const std::uint64_t offset = static_cast<std::uint64_t>(round) * 100'000;
      ids[i].push_back(s.submit(i, s.make(1 - i, {copy(offset, half + offset, 99'999)})));
      s.send(i, 1 - i, {std::byte(round)});
    }
  for (std::size_t i : {0, 1})
    for (auto id : ids[i]) CHECK(s.done(i, id).result.code == errc::ok);
  REQUIRE(
      s.wait([&] { return count<frame_received>(s, 0, 1) == 20 && count<frame_received>(s, 1, 0) == 20; }));
  for (std::size_t i : {0, 1})
    for (std::uint64_t round = 0; round < 20; ++round) {
      const auto source = s.memory(1 - i).subspan(round * 100'000, 99'999);
      const auto target = s.memory(i).subspan(half + round * 100'000, 100'000);
      CHECK(std::ranges::equal(source, target.first(99'999)));
      CHECK(target[99'999] == canary);
    }
}

// Catches: a window that is not kept, or writes forgotten when it is full.
TEST_CASE("more writes than the window all complete, and the window is kept") {
  rig_options options;
  options.limits.window = 4;
  options.limits.write_bytes_max = 4096;
  scene s(options);
  s.connect(0, 1);
  fill(s.memory(0), 3);
  std::vector<transfer_id> ids;
  for (std::uint64_t t = 0; t < 4; ++t) {
    std::vector<block> blocks;
    for (std::uint64_t i = 0; i < 50; ++i)
      blocks.push_back(copy(t * mib + i * 20'000, t * mib + i * 20'000, 20'000));
    ids.push_back(s.submit(0, s.make(1, std::move(blocks))));
  }
  std::uint64_t most = 0;
  REQUIRE(s.wait([&] {
    most = std::max(most, s.stat(0).writes_in_flight);
    return s.stat(0).transfers_active == 0;
  }));
  CHECK(most <= 4);
  for (auto id : ids) {
    const auto end = s.done(0, id);
    CHECK(end.result.code == errc::ok);
    CHECK(end.writes == 250);
  }
  for (std::uint64_t t = 0; t < 4; ++t)
    CHECK(std::ranges::equal(s.memory(0).subspan(t * mib, mib - 48'576),
                             s.memory(1).subspan(t * mib, mib - 48'576)));
}

// Catches: offsets and lengths kept in 32 bits, signed or not, on either side.
TEST_CASE("writes cross the 2^31 and 2^32 borders of a region") {
  constexpr std::uint64_t two31 = std::uint64_t{1} << 31, two32 = std::uint64_t{1} << 32;
  rig_options options;
  options.region_bytes = {two32 + 8 * mib};
  scene s(options);
  s.connect(0, 1);
  constexpr std::uint64_t n = 3 * mib, half = n / 2;
  std::uint64_t seed = 20;
  for (const auto& offsets :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{two31 - half, 1000},
                                                            {1000, two31 - half},
                                                            {two32 - half, two32 - half},
                                                            {two32 + 4 * mib, two32 + 4 * mib}}) {
    const std::uint64_t local = offsets.first, remote = offsets.second;
    INFO("from " << local << " to " << remote);
    fill(s.memory(0).subspan(local, n), ++seed);
    std::ranges::fill(s.memory(1).subspan(remote - 64, n + 128), canary);
    s.deliver(0, 1, {copy(local, remote, n)});
    CHECK(first_difference(s.memory(1).subspan(remote, n), seed) == n);
    CHECK(all_are(s.memory(1).subspan(remote - 64, 64), canary));
    CHECK(all_are(s.memory(1).subspan(remote + n, 64), canary));
  }
  CHECK(all_are(s.memory(1).subspan(two31 + 8 * mib, 4096), std::byte{0}));
}

// Catches: last_blocks posted beside blocks (no flush between), which write order of a provider may hide.
TEST_CASE("last blocks are written only after all blocks were delivered") {
  scene s;
  s.connect(0, 1);
  constexpr std::uint64_t body = mib, stamp = 3 * mib;
  for (std::uint64_t round = 1; round <= 30; ++round) {
    INFO("round " << round);
    fill(s.memory(0).first(body), round);
    std::memcpy(s.memory(0).data() + stamp, &round, sizeof round);
    std::vector<block> blocks;
    for (std::uint64_t i = 0; i < 16; ++i) blocks.push_back(copy(i * body / 16, i * body / 16, body / 16));
    auto t = s.make(1, std::move(blocks));
    t.last_blocks = {copy(stamp, stamp, sizeof round)};
    const auto id = s.submit(0, std::move(t));
    auto* seen = reinterpret_cast<std::uint64_t*>(s.memory(1).data() + stamp);
    REQUIRE(s.wait([&] { return std::atomic_ref(*seen).load() == round; }));
    CHECK(first_difference(s.memory(1).first(body), round) == body);
    CHECK(s.done(0, id).result.code == errc::ok);
  }
}

// Catches: a notify that is sent when the writes were posted, or completed locally, but not delivered.
TEST_CASE("the notify arrives only after every byte, the last blocks included") {
  scene s;
  constexpr std::uint64_t body = mib;
  std::atomic<int> early = 0, seen = 0;
  s.events(1).watch([&](const event& e) {
    if (const auto* f = std::get_if<frame_received>(&e)) {
      const std::uint64_t round = std::to_integer<std::uint64_t>(f->payload.at(0));
      early += first_difference(s.memory(1).first(body), round) != body;
      ++seen;
    }
  });
  s.connect(0, 1);
  for (int round = 1; round <= 30; ++round) {
    fill(s.memory(0).first(body), static_cast<std::uint64_t>(round));
    auto t = s.make(1, {});
    for (std::uint64_t i = 0; i < 16; ++i)
      (i < 8 ? t.blocks : t.last_blocks).push_back(copy(i * body / 16, i * body / 16, body / 16));
    t.notify = outgoing_frame{message_type::room_done, {std::byte(round)}, false};
    CHECK(s.done(0, s.submit(0, std::move(t))).result.code == errc::ok);
    REQUIRE(s.wait([&] { return seen == round; }));
  }
  CHECK(early == 0);
}

// Catches: transfers that never end because there is nothing to wait for.
TEST_CASE("a transfer without bytes ends, and its notify is sent") {
  scene s;
  s.connect(0, 1);
  CHECK(s.done(0, s.submit(0, s.make(1, {}))).result.code == errc::ok);
  auto t = s.make(1, {copy(0, 0, 0)});
  t.notify = outgoing_frame{message_type::room_done, {std::byte{9}}, false};
  CHECK(s.done(0, s.submit(0, std::move(t))).result.code == errc::ok);
  REQUIRE(s.wait([&] { return count<frame_received>(s, 1, 0) == 1; }));
  CHECK(s.frames(1, 0)[0].type == message_type::room_done);
}

// Catches: keys that repeat over sessions or are counted up (a stale writer would hit a later process), and
// registrations that survive their peer.
TEST_CASE("the same memory serves a second session with new keys") {
  scene s;
  const auto first = s.open(1, 0, 1);
  s.at(1).close_peer({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));
  const auto second = s.open(1, 0, 2);
  s.at(1).close_peer({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 2; }));
  const std::uint64_t keys[] = {first.regions[0].key, first.probe.key, second.regions[0].key,
                                second.probe.key};
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(((keys[i] ^ keys[j]) >> 32) != 0);
  for (std::uint32_t session : {3, 4, 5}) {
    INFO("session " << session);
    s.connect(0, 1, session);
    fill(s.memory(0).first(100'000), session);
    s.deliver(0, 1, {copy(0, 50, 100'000)});
    CHECK(first_difference(s.memory(1).subspan(50, 100'000), session) == 100'000);
    s.disconnect(0, 1);
  }
}

// Catches: a target that takes any key, or the key of an endpoint that has ended.
TEST_CASE("a write with the keys of an earlier session lands nowhere") {
  scene s;
  const auto stale = s.open(1, 0, 1);
  s.at(1).close_peer({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));

  const auto mine = s.open(0, 1, 2);
  auto mixed = s.open(1, 0, 2);
  mixed.regions = stale.regions;
  REQUIRE(s.at(0).connect_peer({1}, mixed));
  REQUIRE(s.at(1).connect_peer({0}, mine));
  REQUIRE(s.wait([&] { return count<peer_ready>(s, 0, 1) > 0 && count<peer_ready>(s, 1, 0) > 0; }));
  std::ranges::fill(s.memory(1), canary);
  auto t = s.make(1, {copy(0, 0, 100'000)}, 2s);
  t.notify = outgoing_frame{message_type::room_done, {}, false};
  CHECK(s.done(0, s.submit(0, std::move(t))).result.code != errc::ok);
  CHECK(all_are(s.memory(1), canary));
  CHECK(count<frame_received>(s, 1, 0) == 0);
}

// Catches: a region of sources that peers can write to.
TEST_CASE("a region that is not shown can be read from, and not written to") {
  rig_options options;
  options.region_bytes = {mib, mib};
  options.hidden_regions = 1;
  scene s(options);
  const auto record = s.open(1, 0);
  REQUIRE(record.regions.size() == 2);
  CHECK(record.regions[1] == remote_region{});
  s.at(1).close_peer({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));
  s.connect(0, 1, 2);
  fill(s.memory(0, 1), 6);
  s.deliver(0, 1, {{{1}, 10, {0}, 20, 5000}});
  CHECK(std::ranges::equal(s.memory(0, 1).subspan(10, 5000), s.memory(1).subspan(20, 5000)));
  const auto refused = s.at(0).submit(s.make(1, {{{0}, 0, {1}, 0, 1}}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::transport_region);
}
