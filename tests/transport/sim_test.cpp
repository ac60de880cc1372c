// What only a simulated transport can be asked: exact times, repeatability, and every fault of its wire.
#include "tests/transport/contract/scene.hpp"
#include "transport/sim/sim_world.hpp"

#include <algorithm>
#include <array>

using namespace handoff;
using namespace handoff::transport;
using handoff::transport::contract::all_are;
using handoff::transport::contract::copy;
using handoff::transport::contract::fill;
using handoff::transport::contract::first_difference;
using handoff::transport::contract::recorder;
using namespace std::chrono_literals;

namespace {

/// Two connected processes, 0 and 1, with a region each.
struct pair_of_processes {
  explicit pair_of_processes(std::uint64_t seed = 1, settings limits = {}, bool connected = true)
      : world(seed) {
    for (std::size_t i : {0, 1}) {
      memory[i].resize(1 << 20);
      auto& t = world.add(limits, events[i]);
      REQUIRE(t.register_region({memory[i].data(), memory[i].size(), memory_kind::host}));
    }
    if (connected) {
      connect();
      REQUIRE(world.run_until([&] { return ready(0) && ready(1); }, 2s));
    }
  }

  void connect(std::uint32_t session = 1) {
    const auto a = world.at(0).open_peer({1}, {session}, "sim").value();
    const auto b = world.at(1).open_peer({0}, {session}, "sim").value();
    REQUIRE(world.at(0).connect_peer({1}, b));
    REQUIRE(world.at(1).connect_peer({0}, a));
  }
  bool ready(std::size_t i) const { return !events[i].all<peer_ready>().empty(); }

  void submit(std::uint64_t id, std::vector<block> blocks, duration timeout = 1s) {
    REQUIRE(world.at(0).submit({{id}, {1}, std::move(blocks), {}, std::nullopt, timeout}));
  }
  /// Sends frames that carry their number, from 0.
  void send(std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) {
      REQUIRE(world.at(0).send_frame({1}, {message_type::publish, {std::byte(n)}, false}));
      world.advance(10us);
    }
    world.advance(100ms);
  }
  std::vector<int> numbers() const {
    std::vector<int> got;
    for (const auto& f : events[1].all<frame_received>())
      got.push_back(std::to_integer<int>(f.payload.at(0)));
    return got;
  }

  std::array<std::vector<std::byte>, 2> memory;
  std::array<recorder, 2> events;
  sim_world world;
};

bool rising(const std::vector<int>& x) {
  return std::ranges::adjacent_find(x, std::greater_equal<>()) == x.end();
}

}  // namespace

TEST_SUITE_BEGIN("only sim");

TEST_CASE("the same seed gives the same events at the same times, another seed others") {
  const auto history = [](std::uint64_t seed) {
    pair_of_processes p(seed);
    link_faults faults;
    faults.frame_loss = faults.frame_duplication = faults.frame_reordering = faults.completion_failed = 0.2;
    p.world.set_links(faults);
    for (std::uint64_t id = 1; id <= 20; ++id) p.submit(id, {copy(0, 0, 1000), copy(5000, 5000, 1000)});
    p.send(100);
    std::vector<std::uint64_t> h;
    for (const auto& d : p.events[0].all<transfer_done>()) h.insert(h.end(), {d.id.value, d.bytes});
    for (int n : p.numbers()) h.push_back(static_cast<std::uint64_t>(n));
    const fault_counts& c = p.world.counts();
    h.insert(h.end(), {c.frames_lost, c.frames_duplicated, c.frames_late, c.completions_failed});
    return h;
  };
  CHECK(history(5) == history(5));
  CHECK(history(5) != history(6));
}

TEST_CASE("silence is told exactly silence_after the last sign of life") {
  settings limits;
  limits.silence_after = 700ms;
  pair_of_processes p(1, limits);
  p.world.advance(10s);
  CHECK(p.events[0].all<peer_silent>().empty());
  p.world.freeze(1);
  const auto frozen_at = p.world.now();
  REQUIRE(p.world.run_until([&] { return !p.events[0].all<peer_silent>().empty(); }, 10s));
  CHECK(p.world.now() - frozen_at <= 700ms);
  CHECK(p.world.now() - frozen_at >= 700ms - limits.heartbeat_interval);
  const auto silent_for = p.events[0].all<peer_silent>()[0].silent_for;
  CHECK(silent_for >= 700ms);
  CHECK(silent_for <= 700ms + 1us);
}

TEST_CASE("a transfer to a stopped peer ends undrained, exactly at its deadline") {
  pair_of_processes p;
  p.world.freeze(1);
  p.submit(1, {copy(0, 0, 1000)}, 123ms);
  const auto end = p.world.now() + 123ms;
  p.world.advance_to(end - 1ns);
  CHECK(p.events[0].all<transfer_done>().empty());
  p.world.advance_to(end);
  REQUIRE(p.events[0].all<transfer_done>().size() == 1);
  const auto done = p.events[0].all<transfer_done>()[0];
  CHECK(done.result.code == errc::timed_out);
  CHECK_FALSE(done.drained);
  CHECK(p.world.at(0).current_status().writes_in_flight == 1);
  p.world.thaw(1);
  p.world.advance(1ms);
  CHECK(p.world.at(0).current_status().writes_in_flight == 0);
  CHECK(p.events[0].all<transfer_done>().size() == 1);
}

TEST_CASE("lost frames are passed over, their credits come back, the others keep their order") {
  pair_of_processes p(3);
  p.world.link(0, 1).frame_loss = 0.3;
  for (int round = 0; round < 20; ++round) p.send(250);
  const auto lost = p.world.counts().frames_lost;
  CHECK(lost > 1000);
  // Heartbeats may be among the lost.
  const auto got = p.events[1].all<frame_received>().size();
  CHECK(got < 5000);
  CHECK(got >= 5000 - lost);
  CHECK(p.world.at(0).current_status().frames_queued == 0);
  CHECK(p.events[1].all<peer_failed>().empty());
}

TEST_CASE("a link that loses everything is silence, and heard again when it heals") {
  pair_of_processes p;
  p.world.link(1, 0).frame_loss = 1;
  p.world.advance(5s);
  CHECK(p.events[0].all<peer_silent>().size() == 1);
  CHECK(p.events[1].all<peer_silent>().empty());
  p.world.link(1, 0).frame_loss = 0;
  p.world.advance(1s);
  CHECK(p.events[0].all<peer_heard>().size() == 1);
}

TEST_CASE("duplicates are dropped and counted; in raw mode they come through") {
  pair_of_processes p;
  p.world.link(0, 1).frame_duplication = 1;
  p.send(100);
  CHECK(p.numbers().size() == 100);
  CHECK(rising(p.numbers()));
  CHECK(p.world.at(1).current_status().frames_dropped >= 100);
  p.world.link(0, 1).raw_frames = true;
  p.send(100);
  CHECK(p.numbers().size() == 300);
}

TEST_CASE("overtaken frames are dropped and counted; in raw mode they come through") {
  pair_of_processes p;
  p.world.link(0, 1).frame_reordering = 0.3;
  p.send(200);
  const auto first = p.numbers();
  CHECK(rising(first));
  CHECK(first.size() < 200);
  CHECK(first.size() + p.world.at(1).current_status().frames_dropped >= 200);
  p.world.link(0, 1).raw_frames = true;
  p.send(200);
  const auto all = p.numbers();
  CHECK(all.size() == first.size() + 200);
  CHECK_FALSE(rising({all.begin() + static_cast<std::ptrdiff_t>(first.size()), all.end()}));
}

TEST_CASE("refused posts are tried again, failed ones end the transfer as transport_post") {
  pair_of_processes p;
  fill(p.memory[0], 1);
  p.world.link(0, 1).post_refused = 0.7;
  std::vector<block> blocks;
  for (std::uint64_t i = 0; i < 100; ++i) blocks.push_back(copy(i * 1000, i * 1000, 1000));
  p.submit(1, blocks);
  p.world.advance(1s);
  REQUIRE(p.events[0].all<transfer_done>().size() == 1);
  CHECK(p.events[0].all<transfer_done>()[0].result.code == errc::ok);
  CHECK(p.events[0].all<transfer_done>()[0].retries > 50);
  CHECK(first_difference(std::span(p.memory[1]).first(100'000), 1) == 100'000);

  p.world.link(0, 1).post_refused = 0;
  p.world.link(0, 1).post_failed = 0.1;
  p.submit(2, blocks);
  p.world.advance(1s);
  const auto done = p.events[0].all<transfer_done>().at(1);
  CHECK(done.result.code == errc::transport_post);
  CHECK(done.drained);
}

TEST_CASE("a completion in error ends the transfer drained, a lost one undrained at its deadline") {
  pair_of_processes p;
  std::vector<block> blocks(50, copy(0, 0, 1000));
  p.world.link(0, 1).completion_failed = 0.2;
  p.submit(1, blocks);
  p.world.advance(500ms);
  REQUIRE(p.events[0].all<transfer_done>().size() == 1);
  CHECK(p.events[0].all<transfer_done>()[0].result.code == errc::transport_completion);
  CHECK(p.events[0].all<transfer_done>()[0].drained);

  p.world.link(0, 1).completion_lost = 0.2;
  p.submit(2, blocks);
  p.world.advance(999ms);
  CHECK(p.events[0].all<transfer_done>().size() == 1);
  p.world.advance(1ms);
  const auto done = p.events[0].all<transfer_done>().at(1);
  CHECK(done.result.code == errc::transport_completion);
  CHECK_FALSE(done.drained);
}

TEST_CASE("a write reads its source when it lands, until its transfer is done and not after") {
  pair_of_processes p;
  fill(p.memory[0], 1);
  p.submit(1, {copy(0, 0, 1000)});
  fill(p.memory[0], 2);
  p.world.advance(1ms);
  CHECK(first_difference(std::span(p.memory[1]).first(1000), 2) == 1000);
  REQUIRE(p.events[0].all<transfer_done>().size() == 1);
  fill(p.memory[0], 3);
  p.world.advance(1s);
  CHECK(first_difference(std::span(p.memory[1]).first(1000), 2) == 1000);
}

TEST_CASE("what a closed writer had posted to a stopped target lands; only the target's fence stops it") {
  for (const bool fenced : {false, true}) {
    INFO("fenced by its target: " << fenced);
    pair_of_processes p;
    fill(p.memory[0], 1);
    p.world.freeze(1);
    p.submit(1, {copy(0, 0, 1000)});
    p.world.advance(1ms);
    p.world.at(0).close_peer({1});
    p.world.advance(1ms);
    REQUIRE(p.events[0].all<peer_closed>().size() == 1);
    CHECK_FALSE(p.events[0].all<transfer_done>()[0].drained);
    fill(p.memory[0], 2);
    p.world.thaw(1);
    if (fenced) p.world.at(1).fence({0});
    p.world.advance(10ms);
    CHECK((first_difference(std::span(p.memory[1]).first(1000), 1) == 1000) != fenced);
    CHECK(all_are(std::span(p.memory[1]).first(1000), std::byte{0}) == fenced);
    CHECK(p.world.counts().writes_to_nobody == (fenced ? 1 : 0));
  }
}

TEST_CASE("the end of a peer is told at once, or only by silence where ends are not told") {
  for (const bool told : {true, false}) {
    INFO("told: " << told);
    pair_of_processes p;
    p.world.set_ends_are_told(told);
    p.submit(1, std::vector<block>(1000, copy(0, 0, 1000)), 800ms);
    p.world.advance(50us);
    p.world.kill(1);
    const auto seen = p.events[1].count();
    p.world.advance(799ms);
    CHECK(p.events[0].all<peer_failed>().size() == (told ? 1 : 0));
    REQUIRE(p.events[0].all<transfer_done>().size() == (told ? 1 : 0));
    p.world.advance(5s);
    const auto done = p.events[0].all<transfer_done>().at(0);
    CHECK((done.result.code == errc::timed_out) != told);  // else peer_gone, or a write that met nobody first
    CHECK(done.drained == told);
    CHECK(p.events[0].all<peer_silent>().size() == (told ? 0 : 1));
    CHECK(p.events[1].count() == seen);
    CHECK(p.world.at(1).send_frame({0}, {}).error().code == errc::closed);
  }
}

TEST_CASE(
    "the probe survives a link that loses half of the frames, and fails in time on one that loses all") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    pair_of_processes p(seed, {}, false);
    link_faults faults;
    faults.frame_loss = 0.3;
    p.world.set_links(faults);
    p.connect();
    p.world.advance(3s);
    for (std::size_t i : {0, 1})
      CHECK(p.events[i].all<peer_ready>().size() + p.events[i].all<peer_failed>().size() == 1);
  }
  pair_of_processes p(1, {}, false);
  p.world.link(0, 1).frame_loss = 1;
  p.connect();
  p.world.advance(2s - 1ns);
  CHECK(p.events[0].count() + p.events[1].count() == 0);
  p.world.advance(1ns);
  for (std::size_t i : {0, 1}) {
    REQUIRE(p.events[i].all<peer_failed>().size() == 1);
    CHECK(p.events[i].all<peer_failed>()[0].reason.code == errc::transport_probe);
  }
}

TEST_CASE("a frozen process sees what happened meanwhile in its order, before its own late timers") {
  pair_of_processes p;
  p.submit(1, {copy(0, 0, 1000)}, 100ms);
  p.world.advance(1ns);
  p.world.freeze(0);
  p.world.advance(10s);
  CHECK(p.events[0].all<transfer_done>().empty());
  p.world.thaw(0);
  p.world.advance(0ns);
  REQUIRE(p.events[0].all<transfer_done>().size() == 1);
  CHECK(p.events[0].all<transfer_done>()[0].result.code == errc::ok);
}

TEST_SUITE_END();
