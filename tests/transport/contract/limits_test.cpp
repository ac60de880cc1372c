// What is refused, with which error, and that a refusal leaves nothing behind.
#include "tests/transport/contract/scene.hpp"

#include <algorithm>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;

namespace {

constexpr std::uint64_t top = ~std::uint64_t{0};

}  // namespace

// Catches: a submit that queues before it counts, and refused transfers that end nevertheless.
TEST_CASE("at transfers_max a transfer is refused as transport_full, and nothing of it is queued") {
  rig_options options;
  options.limits.transfers_max = 8;
  scene s(options);
  s.connect(0, 1);
  std::vector<transfer_id> accepted;
  transfer_id refused{0};
  std::uint64_t most = 0;
  for (int i = 0; i < 5000 && refused.value == 0; ++i) {
    auto t = s.make(1, {copy(0, 0, 1 << 20)});
    const auto id = t.id;
    const auto result = s.at(0).submit(std::move(t));
    most = std::max(most, s.stat(0).transfers_active);
    if (result) {
      accepted.push_back(id);
    } else {
      CHECK(result.error().code == errc::transport_full);
      refused = id;
    }
  }
  CHECK(refused.value != 0);
  CHECK(most <= 8);
  for (auto id : accepted) CHECK(s.done(0, id).result.code == errc::ok);
  CHECK(s.done_count(0, refused) == 0);
  CHECK(s.events(0).all<transfer_done>().size() == accepted.size());
  s.deliver(0, 1, {copy(0, 0, 100)});
}

// Catches: bounds computed with wrapping sums, a region index that is not checked, and a transfer of which
// the good blocks are written although one is bad.
TEST_CASE("a block outside of what is registered is refused, and nothing of its transfer is written") {
  rig_options options;
  options.region_bytes = {100'000, 50'000};
  scene s(options);
  s.connect(0, 1);
  std::ranges::fill(s.memory(1), canary);
  std::ranges::fill(s.memory(1, 1), canary);
  const std::vector<block> bad = {
      {{2}, 0, {0}, 0, 1},       {{0}, 0, {2}, 0, 1},       {{top >> 32}, 0, {0}, 0, 1},
      {{0}, 0, {0}, 0, 100'001}, {{0}, 1, {0}, 0, 100'000}, {{0}, 0, {0}, 1, 100'000},
      {{1}, 0, {0}, 0, 50'001},  {{0}, 0, {1}, 0, 50'001},  {{0}, top, {0}, 0, 2},
      {{0}, 0, {0}, top, 2},     {{0}, 2, {0}, 0, top},     {{0}, 0, {0}, 2, top - 1},
      {{0}, 100'001, {0}, 0, 0}, {{0}, 0, {0}, 100'001, 0}, {{0}, top - 9, {0}, top - 9, 10},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    INFO("bad block " << i);
    for (const bool in_last : {false, true}) {
      auto t = s.make(1, {copy(0, 0, 1000)});
      (in_last ? t.last_blocks : t.blocks).push_back(bad[i]);
      t.notify = outgoing_frame{message_type::room_done, {}, false};
      const auto refused = s.at(0).submit(std::move(t));
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::transport_region);
      CHECK_FALSE(refused.error().detail.empty());
    }
  }
  CHECK(s.stat(0).transfers_active == 0);
  fill(s.memory(0), 4);
  s.deliver(0, 1, {copy(90'000, 90'000, 10'000)});
  CHECK(all_are(s.memory(1).first(90'000), canary));
  CHECK(all_are(s.memory(1, 1), canary));
  CHECK(count<frame_received>(s, 1, 0) == 0);
}

// Catches: a cap that counts wrong, or a refused peer that keeps its endpoint.
TEST_CASE("no more than peers_max peers can be open") {
  rig_options options;
  options.limits.peers_max = 2;
  scene s(options);
  s.open(0, 5);
  s.open(0, 6);
  const auto third = s.at(0).open_peer({7}, {1}, provider_under_test().provider);
  REQUIRE_FALSE(third);
  CHECK(third.error().code == errc::limit_exceeded);
  CHECK(s.stat(0).peers == 2);
  s.at(0).close_peer({5});
  REQUIRE(s.wait([&] { return !s.events(0).all<peer_closed>().empty(); }));
  s.open(0, 7);
}

// Catches: memory that is given back while a peer still knows its keys.
TEST_CASE("regions are fixed while a peer is open and may go afterwards") {
  scene s;
  s.connect(0, 1);
  const auto refused = s.at(1).unregister_region({0});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::room_state);
  const auto late = s.at(1).register_region({s.memory(1).data(), 100, memory_kind::host});
  REQUIRE_FALSE(late);
  CHECK(late.error().code == errc::room_state);
  s.deliver(0, 1, {copy(0, 0, 100)});
  s.disconnect(0, 1);
  CHECK(s.at(1).unregister_region({0}));
  CHECK(s.stat(1).regions == 0);
  CHECK_FALSE(s.at(1).unregister_region({0}));
  CHECK_FALSE(s.at(1).unregister_region({77}));
  const auto again = s.at(1).register_region({s.memory(1).data(), 4096, memory_kind::host});
  REQUIRE(again);
  CHECK(again->value == 1);
  const auto mine = s.open(0, 1, 2);
  const auto theirs = s.open(1, 0, 2);
  REQUIRE(theirs.regions.size() == 2);
  CHECK(theirs.regions[0] == remote_region{});
  CHECK(theirs.regions[1].bytes == 4096);
}

// Catches: calls that are served, or crash, in a state that cannot serve them.
TEST_CASE("calls for peers and providers that are not there are refused") {
  scene s;
  CHECK(s.at(0).open_peer({1}, {1}, "carrier pigeon").error().code == errc::transport_provider);
  CHECK(s.at(0).submit(s.make(1, {})).error().code == errc::peer_gone);
  CHECK(s.at(0).send_frame({1}, {message_type::publish, {}, false}).error().code == errc::peer_gone);
  const auto record = s.open(0, 1);
  CHECK(s.at(0).open_peer({1}, {2}, provider_under_test().provider).error().code == errc::invalid_argument);
  CHECK(s.at(0).submit(s.make(1, {})).error().code == errc::peer_gone);
  CHECK(s.at(0).send_frame({1}, {message_type::publish, {}, false}).error().code == errc::peer_gone);
  CHECK_FALSE(s.at(0).connect_peer({9}, record));
  auto wrong = record;
  wrong.provider = "carrier pigeon";
  CHECK(s.at(0).connect_peer({1}, wrong).error().code == errc::transport_provider);
  CHECK_FALSE(s.at(0).register_region({nullptr, 5, memory_kind::host}));
}

// Catches: a fence or close that is not answered, so that its caller waits for ever.
TEST_CASE("fence and close are answered for a peer that is not open, too") {
  scene s;
  s.at(0).fence({40});
  s.at(0).close_peer({41});
  REQUIRE(s.wait([&] { return s.events(0).all<peer_closed>().size() == 2; }));
  CHECK(about<peer_closed>(s, 0, 40).at(0).fenced);
  CHECK_FALSE(about<peer_closed>(s, 0, 41).at(0).fenced);
}

// Catches: a connect that hangs, or takes others with it, when nobody answers at an address.
TEST_CASE("an address where nobody answers fails the peer within probe_timeout, and no other") {
  rig_options options;
  options.endpoints = 3;
  options.limits.probe_timeout = 500ms;
  scene s(options);
  s.connect(0, 2);
  auto good = s.open(1, 0);
  for (const bool garbage : {true, false}) {
    INFO("garbage " << garbage);
    s.open(0, 1);
    auto record = good;
    if (garbage)
      for (auto& b : record.address) b = static_cast<std::uint8_t>(b ^ 0xa5);
    else
      s.at(1).close_peer({0});
    const auto failures = count<peer_failed>(s, 0, 1);
    if (s.at(0).connect_peer({1}, record)) {
      REQUIRE(s.wait([&] { return count<peer_failed>(s, 0, 1) > failures; }, 5s));
      CHECK(about<peer_failed>(s, 0, 1).back().reason.code == errc::transport_probe);
    }
    CHECK(s.at(0).submit(s.make(1, {})).error().code == errc::peer_gone);
    s.deliver(0, 2, {copy(0, 0, 1000)});
    const auto closings = count<peer_closed>(s, 0, 1);
    s.at(0).close_peer({1});
    REQUIRE(s.wait([&] { return count<peer_closed>(s, 0, 1) > closings; }));
  }
  CHECK(s.events(0).all<peer_silent>().empty());
}

// Catches: leaks of endpoints and registrations, and counters that run away.
TEST_CASE("after everything is closed the transport holds nothing") {
  scene s;
  for (std::uint32_t session = 1; session <= 3; ++session) {
    s.connect(0, 1, session);
    CHECK(s.stat(0).peers == 1);
    CHECK(s.stat(0).registrations > 0);
    s.deliver(0, 1, {copy(0, 0, 3000)});
    s.send(0, 1, {std::byte{1}});
    REQUIRE(s.wait([&] { return count<frame_received>(s, 1, 0) == session; }));
    s.disconnect(0, 1);
    for (std::size_t i : {0, 1}) {
      const auto st = s.stat(i);
      CHECK(st.regions == 1);
      CHECK(st.peers == 0);
      CHECK(st.registrations == 0);
      CHECK(st.transfers_active == 0);
      CHECK(st.writes_in_flight == 0);
      CHECK(st.frames_queued == 0);
    }
  }
  CHECK(s.stat(0).transfers_done == 3);
  CHECK(s.stat(0).transfers_failed == 0);
  CHECK(s.stat(0).bytes_written == 9000);
  CHECK(s.stat(0).frames_sent == 3);
  CHECK(s.stat(1).frames_received == 3);
}

// Catches: events after close, a second close that breaks, and calls that crash afterwards.
TEST_CASE("close is final, repeatable and silent") {
  scene s;
  s.connect(0, 1);
  s.submit(0, s.make(1, {copy(0, 0, 4 << 20)}));
  s.at(0).close();
  const auto events = s.events(0).count();
  s.at(0).close();
  s.pass(100ms);
  CHECK(s.events(0).count() == events);
  CHECK(s.at(0).submit(s.make(1, {})).error().code == errc::closed);
  CHECK(s.at(0).open_peer({3}, {1}, provider_under_test().provider).error().code == errc::closed);
}
