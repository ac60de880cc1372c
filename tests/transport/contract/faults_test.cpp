// Peers that end, stop, or are fenced: 0 is the side that is looked at, 1 is the faulty peer, 2 the healthy
// one that must not notice.
#include "tests/transport/contract/scene.hpp"

#include <algorithm>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;

namespace {

constexpr std::uint64_t mib = 1 << 20;

/// Rewrites the same 4 MiB again and again: long enough to be caught in the middle.
std::vector<block> long_write() {
  return std::vector<block>(2000, copy(0, 0, 4 * mib));
}

/// `n` small transfers from 0 to the healthy peer, all of which must succeed.
void healthy_goes_on(scene& s, std::size_t n) {
  const auto before = count<frame_received>(s, 2, 0);
  std::vector<transfer_id> ids;
  for (std::size_t i = 0; i < n; ++i) {
    fill(s.memory(0).subspan(i * 4096, 4096), 100 + i);
    ids.push_back(s.submit(0, s.make(2, {copy(i * 4096, i * 4096, 4096)})));
    s.send(0, 2, {std::byte(i)});
  }
  for (auto id : ids) CHECK(s.done(0, id).result.code == errc::ok);
  REQUIRE(s.wait([&] { return count<frame_received>(s, 2, 0) == before + n; }));
  for (std::size_t i = 0; i < n; ++i)
    CHECK(first_difference(s.memory(2).subspan(i * 4096, 4096), 100 + i) == 4096);
  CHECK(count<peer_failed>(s, 0, 2) == 0);
  CHECK(count<peer_silent>(s, 0, 2) == 0);
}

rig_options three(duration silence_after = 400ms) {
  rig_options options;
  options.endpoints = 3;
  options.limits.heartbeat_interval = silence_after / 4;
  options.limits.silence_after = silence_after;
  return options;
}

/// Both peers connected, a long transfer to peer 1 on its way.
transfer_id start_long_write(scene& s, duration timeout) {
  s.connect(0, 1);
  s.connect(0, 2);
  const auto id = s.submit(0, s.make(1, long_write(), timeout));
  REQUIRE(s.wait([&] { return s.stat(0).bytes_written > 0; }));
  return id;
}

}  // namespace

// Catches: heartbeats that are not sent or not counted while nothing else happens.
TEST_CASE("an idle pair is never silent") {
  scene s(three());
  s.connect(0, 1);
  s.pass(1200ms);
  for (std::size_t i : {0, 1}) {
    CHECK(s.events(i).all<peer_silent>().empty());
    CHECK(s.events(i).all<peer_failed>().empty());
  }
}

// Catches: transfers that never end, or end twice, when their endpoint goes.
TEST_CASE("closing a peer ends its transfers as peer_gone, then says so") {
  scene s(three());
  const auto id = start_long_write(s, patience);
  const auto queued = s.submit(0, s.make(1, {copy(0, 0, 100)}));
  s.at(0).close_peer({1});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) == 1; }));
  CHECK_FALSE(about<peer_closed>(s, 0, 1)[0].fenced);
  CHECK(s.done(0, id).result.code == errc::peer_gone);
  CHECK(s.done_count(0, queued) == 1);
  const auto all = s.events(0).everything();
  const auto closed =
      std::ranges::find_if(all, [](const event& e) { return std::holds_alternative<peer_closed>(e); });
  CHECK(std::none_of(closed, all.end(),
                     [](const event& e) { return std::holds_alternative<transfer_done>(e); }));
  healthy_goes_on(s, 50);
}

// Catches: the same, and a fence that reports another reason.
TEST_CASE("fencing a peer ends one's own transfers to it as transport_fenced") {
  scene s(three());
  const auto id = start_long_write(s, patience);
  s.at(0).fence({1});
  CHECK(s.done(0, id).result.code == errc::transport_fenced);
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) == 1; }));
  CHECK(about<peer_closed>(s, 0, 1)[0].fenced);
  healthy_goes_on(s, 50);
}

// Catches: a fence after which the writer's operations that are on their way still land.
TEST_CASE("after peer_closed of a fence no byte of a running writer lands") {
  scene s(three());
  const auto id = start_long_write(s, 2s);
  s.at(1).fence({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));
  std::ranges::fill(s.memory(1), canary);
  s.pass(300ms);
  CHECK(all_are(s.memory(1), canary));
  CHECK(s.done(0, id).result.code != errc::ok);
  CHECK(all_are(s.memory(1), canary));
  healthy_goes_on(s, 50);
}

// Catches: deadlines that are not kept although the transfer makes progress.
TEST_CASE("a transfer ends at its deadline even while its bytes are moving") {
  scene s(three());
  s.connect(0, 1);
  const auto id = s.submit(0, s.make(1, std::vector<block>(1'000'000, copy(0, 0, 4096)), 1ms));
  const auto end = s.done(0, id);
  CHECK(end.result.code == errc::timed_out);
  REQUIRE(s.wait([&] { return s.stat(0).writes_in_flight == 0; }));
  s.deliver(0, 1, {copy(0, 0, 5000)});
}

// Catches: a peer that cannot be opened again after it was fenced, or remembers its old session.
TEST_CASE("a fenced peer can be connected again under the next session") {
  scene s(three());
  for (std::uint32_t session = 1; session <= 3; ++session) {
    s.connect(0, 1, session);
    s.send(0, 1, {std::byte(session)});
    REQUIRE(s.wait([&] { return count<frame_received>(s, 1, 0) == session; }));
    CHECK(s.frames(1, 0).back().session.value == session);
    s.deliver(0, 1, {copy(0, 0, 10'000)});
    for (std::size_t i : {0, 1}) s.at(i).fence({static_cast<std::uint32_t>(1 - i)});
    REQUIRE(s.wait(
        [&] { return count<peer_closed>(s, 0, 1) == session && count<peer_closed>(s, 1, 0) == session; }));
  }
}

// Catches: silence that is not seen, seen of the wrong peer, told again and again, or never taken back.
TEST_CASE("a stopped peer is told as silent once, and as heard when it goes on") {
  CONTRACT_NEEDS(freeze);
  scene s(three());
  s.connect(0, 1);
  s.connect(0, 2);
  s.on().freeze(1);
  REQUIRE(s.wait([&] { return count<peer_silent>(s, 0, 1) > 0; }, 5s));
  CHECK(about<peer_silent>(s, 0, 1)[0].silent_for >= 400ms);
  s.pass(800ms);
  CHECK(count<peer_silent>(s, 0, 1) == 1);
  CHECK(count<peer_heard>(s, 0, 1) == 0);
  healthy_goes_on(s, 50);
  s.on().thaw(1);
  REQUIRE(s.wait([&] { return count<peer_heard>(s, 0, 1) > 0; }, 5s));
  CHECK(count<peer_failed>(s, 0, 1) == 0);
  s.deliver(0, 1, {copy(0, 0, 100'000)});
}

// Catches: a greeting that waits for a stopped process and takes it down when its sender is gone.
TEST_CASE("who stopped before it connected finds that the peer has left, and connects anew") {
  CONTRACT_NEEDS(freeze);
  auto options = three();
  options.limits.probe_timeout = 300ms;
  scene s(options);
  s.connect(0, 2);
  const auto here = s.open(0, 1), there = s.open(1, 0);
  s.on().freeze(1);
  REQUIRE(s.at(0).connect_peer({1}, there));
  REQUIRE(s.wait([&] { return count<peer_failed>(s, 0, 1) == 1; }));
  s.at(0).close_peer({1});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) == 1; }));
  s.on().thaw(1);
  s.pass(50ms);
  if (s.at(1).connect_peer({0}, here)) REQUIRE(s.wait([&] { return count<peer_failed>(s, 1, 0) == 1; }));
  s.at(1).close_peer({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));
  s.connect(0, 1, 2);
  s.deliver(0, 1, {copy(0, 0, 100'000)});
  healthy_goes_on(s, 50);
}

// Catches: one endpoint or queue for all peers (a stopped one blocks them), and transfers that outlive their
// deadline because their completion never comes.
TEST_CASE("a peer that stops in mid-write fails its own transfers at their deadline, and no other") {
  CONTRACT_NEEDS(freeze);
  scene s(three());
  const auto id = start_long_write(s, 3s);
  s.on().freeze(1);
  const auto later = s.submit(0, s.make(1, {copy(0, 0, 64)}, 1s));
  healthy_goes_on(s, 200);
  const auto end = s.done(0, id);
  CHECK(end.result.code != errc::ok);
  CHECK(s.done(0, later).result.code != errc::ok);
  healthy_goes_on(s, 200);
  s.on().thaw(1);
  s.at(0).close_peer({1});
  s.at(1).fence({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) > 0 && count<peer_closed>(s, 1, 0) > 0; }));
  s.connect(0, 1, 2);
  s.deliver(0, 1, {copy(0, 0, 100'000)});
}

// Catches: a fence that only closes the fencing side's sending, so that a writer that wakes up later lands.
TEST_CASE("a stopped writer that was fenced lands no byte when it goes on") {
  CONTRACT_NEEDS(freeze);
  scene s(three());
  s.connect(1, 0);
  s.connect(0, 2);
  fill(s.memory(1), 9);
  s.submit(1, s.make(0, long_write(), 3s));
  REQUIRE(s.wait([&] { return s.stat(1).bytes_written > 0; }));
  s.on().freeze(1);
  s.at(0).fence({1});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) == 1; }));
  std::ranges::fill(s.memory(0), canary);
  s.on().thaw(1);
  s.pass(500ms);
  CHECK(all_are(s.memory(0), canary));
  REQUIRE(s.wait([&] { return !s.events(1).all<transfer_done>().empty(); }));
  CHECK(s.events(1).all<transfer_done>()[0].result.code != errc::ok);
  CHECK(all_are(s.memory(0), canary));
  healthy_goes_on(s, 50);
}

// Catches: a stopped target that fences before it looks at what has come, and is written to all the same.
TEST_CASE("a stopped target that fences as it goes on keeps its memory") {
  CONTRACT_NEEDS(freeze);
  scene s(three());
  const auto id = start_long_write(s, 2s);
  s.on().freeze(1);
  s.pass(50ms);
  s.on().thaw(1);
  s.at(1).fence({0});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 1, 0) == 1; }));
  std::ranges::fill(s.memory(1), canary);
  CHECK(s.done(0, id).result.code != errc::ok);
  s.pass(300ms);
  CHECK(all_are(s.memory(1), canary));
  healthy_goes_on(s, 50);
}

// Catches: a dead peer that goes unnoticed, blocks others, or whose transfers do not end.
TEST_CASE("a killed peer is noticed, fails its transfers by their deadline, and disturbs no other") {
  CONTRACT_NEEDS(kill);
  scene s(three());
  const auto id = start_long_write(s, 3s);
  s.on().kill(1);
  healthy_goes_on(s, 200);
  CHECK(s.done(0, id).result.code != errc::ok);
  REQUIRE(s.wait([&] { return count<peer_failed>(s, 0, 1) > 0 || count<peer_silent>(s, 0, 1) > 0; }, 5s));
  s.at(0).fence({1});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) > 0; }));
  healthy_goes_on(s, 200);
  CHECK(s.stat(0).peers == 1);
}

// Catches: a target that is taken down by its writer's death.
TEST_CASE("a writer that is killed in mid-write leaves its target at work") {
  CONTRACT_NEEDS(kill);
  scene s(three());
  s.connect(1, 0);
  s.connect(0, 2);
  s.submit(1, s.make(0, long_write(), 3s));
  REQUIRE(s.wait([&] { return s.stat(1).bytes_written > 0; }));
  s.on().kill(1);
  REQUIRE(s.wait([&] { return count<peer_failed>(s, 0, 1) > 0 || count<peer_silent>(s, 0, 1) > 0; }, 5s));
  s.at(0).fence({1});
  REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) > 0; }));
  std::ranges::fill(s.memory(0), canary);
  s.pass(300ms);
  CHECK(all_are(s.memory(0), canary));
  healthy_goes_on(s, 200);
}
