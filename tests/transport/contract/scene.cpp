#include "tests/transport/contract/scene.hpp"

#include <algorithm>

namespace handoff::transport::contract {

std::byte pattern(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + offset * 0xd1342543de82ef95u;
  x ^= x >> 29;
  const auto b = static_cast<std::byte>((x * 0xbf58476d1ce4e5b9u) >> 56);
  return b == canary ? std::byte{0x3a} : b;
}

void fill(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern(seed, i);
}

std::size_t first_difference(std::span<const std::byte> memory, std::uint64_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i)
    if (memory[i] != pattern(seed, i)) return i;
  return memory.size();
}

bool all_are(std::span<const std::byte> memory, std::byte value) {
  return std::ranges::all_of(memory, [=](std::byte b) { return b == value; });
}

block copy(std::uint64_t local_offset, std::uint64_t remote_offset, std::uint64_t bytes) {
  return {{0}, local_offset, {0}, remote_offset, bytes};
}

scene::scene(const rig_options& options) : rig_(make_rig(options)) {}

endpoint_record scene::open(std::size_t i, std::size_t j, std::uint32_t session) {
  auto record = at(i).open_peer({static_cast<std::uint32_t>(j)}, {session}, provider_under_test().provider);
  if (!record) FAIL("endpoint " << i << ", open_peer(" << j << "): " << record.error().detail);
  return *record;
}

void scene::connect(std::size_t i, std::size_t j, std::uint32_t session) {
  const auto mine = open(i, j, session);
  const auto theirs = open(j, i, session);
  REQUIRE(at(i).connect_peer({static_cast<std::uint32_t>(j)}, theirs));
  REQUIRE(at(j).connect_peer({static_cast<std::uint32_t>(i)}, mine));
  const auto ready = [&](std::size_t here, std::size_t there) {
    const auto events = about<peer_ready>(*this, here, there);
    return !events.empty() && events.back().session.value == session;
  };
  REQUIRE(wait([&] { return ready(i, j) && ready(j, i); }));
}

void scene::disconnect(std::size_t i, std::size_t j) {
  const auto before_i = count<peer_closed>(*this, i, j);
  const auto before_j = count<peer_closed>(*this, j, i);
  at(i).close_peer({static_cast<std::uint32_t>(j)});
  at(j).close_peer({static_cast<std::uint32_t>(i)});
  REQUIRE(wait([&] {
    return count<peer_closed>(*this, i, j) > before_i && count<peer_closed>(*this, j, i) > before_j;
  }));
}

transfer scene::make(std::size_t to, std::vector<block> blocks, duration timeout) {
  transfer t;
  t.id = {next_transfer_++};
  t.peer = {static_cast<std::uint32_t>(to)};
  t.blocks = std::move(blocks);
  t.timeout = timeout;
  return t;
}

transfer_id scene::submit(std::size_t from, transfer t) {
  const transfer_id id = t.id;
  const auto accepted = at(from).submit(std::move(t));
  if (!accepted) FAIL("submit: " << accepted.error().detail);
  return id;
}

std::size_t scene::done_count(std::size_t at, transfer_id id) {
  return events(at).count_if<transfer_done>([&](const transfer_done& d) { return d.id == id; });
}

transfer_done scene::done(std::size_t at, transfer_id id, duration limit) {
  REQUIRE(wait([&] { return done_count(at, id) > 0; }, limit));
  const auto all = events(at).all<transfer_done>();
  CHECK(done_count(at, id) == 1);
  return *std::ranges::find_if(all, [&](const auto& d) { return d.id == id; });
}

transfer_done scene::deliver(std::size_t from, std::size_t to, std::vector<block> blocks) {
  std::uint64_t bytes = 0;
  for (const block& b : blocks) bytes += b.bytes;
  const auto count = blocks.size();
  auto end = done(from, submit(from, make(to, std::move(blocks))));
  CHECK_MESSAGE(end.result.code == errc::ok, end.result.detail);
  CHECK(end.drained);
  CHECK(end.bytes == bytes);
  CHECK(end.blocks == count);
  return end;
}

void scene::send(std::size_t from, std::size_t to, std::vector<std::byte> payload, bool urgent) {
  const auto accepted = at(from).send_frame({static_cast<std::uint32_t>(to)},
                                            {message_type::publish, std::move(payload), urgent});
  if (!accepted) FAIL("send_frame: " << accepted.error().detail);
}

std::vector<frame_received> scene::frames(std::size_t at, std::size_t from) {
  return about<frame_received>(*this, at, from);
}

}  // namespace handoff::transport::contract
