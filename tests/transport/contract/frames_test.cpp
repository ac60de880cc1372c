// Frames: order, sizes, flow control, sessions.
#include "messages/limits.hpp"
#include "messages/wire.hpp"
#include "tests/transport/contract/scene.hpp"

#include <algorithm>
#include <random>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;

namespace {

constexpr std::size_t payload_max = limits::frame_bytes - wire::header_bytes;

std::vector<std::byte> payload(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> p(bytes);
  fill(p, number);
  return p;
}

}  // namespace

// Catches: frames lost, doubled or swapped, credits that leak (2,000 frames need them returned 30 times), and
// lengths cut at the limits.
TEST_CASE("frames of every size arrive in order and once, both ways") {
  scene s;
  s.connect(0, 1);
  std::mt19937_64 random(9);
  std::vector<std::size_t> sizes = {0, 1, 7, 8, payload_max - 1, payload_max};
  while (sizes.size() < 2000) sizes.push_back(random() % (payload_max + 1));
  for (std::size_t n = 0; n < sizes.size(); ++n)
    for (std::size_t i : {0, 1}) s.send(i, 1 - i, payload(n, sizes[n]));
  REQUIRE(s.wait([&] {
    return count<frame_received>(s, 0, 1) >= sizes.size() && count<frame_received>(s, 1, 0) >= sizes.size();
  }));
  for (std::size_t i : {0, 1}) {
    const auto got = s.frames(i, 1 - i);
    REQUIRE(got.size() == sizes.size());
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < got.size(); ++n) {
      wrong += got[n].payload.size() != sizes[n] || first_difference(got[n].payload, n) != sizes[n];
      wrong += got[n].type != message_type::publish || got[n].session.value != 1;
    }
    CHECK(wrong == 0);
  }
}

// Catches: a frame cut or sent over its limit, or a refusal that still queues something.
TEST_CASE("a frame that is too large is refused and sends nothing") {
  scene s;
  s.connect(0, 1);
  const auto refused = s.at(0).send_frame({1}, {message_type::publish, payload(1, payload_max + 1), false});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::wire_too_large);
  auto t = s.make(1, {copy(0, 0, 100)});
  t.notify = outgoing_frame{message_type::room_done, payload(1, payload_max + 1), false};
  CHECK(s.at(0).submit(std::move(t)).error().code == errc::wire_too_large);
  s.send(0, 1, payload(2, 3));
  REQUIRE(s.wait([&] { return count<frame_received>(s, 1, 0) > 0; }));
  CHECK(s.frames(1, 0)[0].payload == payload(2, 3));
  CHECK(s.events(0).all<transfer_done>().empty());
}

// Catches: an unbounded queue (a sender that eats memory while its peer is stopped), urgent frames stuck
// behind ordinary ones, and credits that do not come back.
TEST_CASE("credits end at a stopped peer: a bounded queue, then transport_full; urgent frames overtake") {
  CONTRACT_NEEDS(freeze);
  rig_options options;
  options.endpoints = 3;
  scene s(options);
  s.connect(0, 1);
  s.connect(0, 2);
  s.on().freeze(1);
  std::size_t accepted = 0;
  error refusal;
  const auto limit = limits::frame_queue + 2 * limits::frame_credits;
  while (!refusal && accepted < 2 * limit) {
    auto sent = s.at(0).send_frame({1}, {message_type::publish, payload(accepted, 40), false});
    if (sent)
      ++accepted;
    else
      refusal = sent.error();
    if (accepted % 64 == 0) s.pass(1ms);
  }
  CHECK(refusal.code == errc::transport_full);
  CHECK(accepted >= limits::frame_queue);
  CHECK(accepted <= limit);
  CHECK(s.stat(0).frames_queued <= limits::frame_queue);
  s.send(0, 1, payload(1'000'000, 5), true);
  s.send(0, 2, payload(5, 5));
  REQUIRE(s.wait([&] { return count<frame_received>(s, 2, 0) == 1; }));

  s.on().thaw(1);
  REQUIRE(s.wait([&] { return count<frame_received>(s, 1, 0) >= accepted + 1; }));
  const auto got = s.frames(1, 0);
  REQUIRE(got.size() == accepted + 1);
  const auto urgent = std::ranges::find_if(got, [](const auto& f) { return f.payload.size() == 5; });
  REQUIRE(urgent != got.end());
  CHECK(urgent - got.begin() <= limits::frame_credits);
  std::size_t number = 0, wrong = 0;
  for (const auto& f : got)
    if (f.payload.size() != 5) wrong += f.payload != payload(number++, 40);
  CHECK(wrong == 0);
}

// Catches: a transport that does not look at the session of what arrives.
TEST_CASE("two sides of different sessions never become ready, and nothing of the other is delivered") {
  rig_options options;
  options.limits.probe_timeout = 500ms;
  scene s(options);
  const auto mine = s.open(0, 1, 1);
  const auto theirs = s.open(1, 0, 2);
  REQUIRE(s.at(0).connect_peer({1}, theirs));
  REQUIRE(s.at(1).connect_peer({0}, mine));
  REQUIRE(s.wait([&] { return count<peer_failed>(s, 0, 1) > 0 && count<peer_failed>(s, 1, 0) > 0; }, 5s));
  CHECK(about<peer_failed>(s, 0, 1)[0].reason.code == errc::transport_probe);
  CHECK(s.events(0).all<peer_ready>().empty());
  CHECK(s.events(1).all<peer_ready>().empty());
  CHECK(s.stat(0).frames_dropped + s.stat(1).frames_dropped > 0);
  CHECK(s.events(0).all<frame_received>().empty());
}
