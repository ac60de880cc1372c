#include "actors/runtime/verdict_queue.hpp"

#include <thread>

#include <doctest/doctest.h>
#include <poll.h>

using namespace handoff;

namespace {

queued_event numbered(std::uint64_t n) {
  queued_event e;
  e.event.key.room = {n};
  return e;
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

}  // namespace

TEST_CASE("events come out in order, across the ring's end and through the backlog") {
  event_channel channel(3);
  for (std::uint64_t n = 0; n < 10; ++n) channel.push(room_side::sink, numbered(n));
  CHECK(channel.backlogged(room_side::sink));
  queued_event e;
  for (std::uint64_t n = 0; n < 10; ++n) {
    REQUIRE(channel.pop(e));
    CHECK(e.event.key.room.value == n);
    channel.flush(room_side::sink);
  }
  CHECK_FALSE(channel.pop(e));
  CHECK_FALSE(channel.backlogged(room_side::sink));
}

TEST_CASE("the descriptor turns readable only for a consumer that armed it") {
  event_channel channel(8);
  channel.push(room_side::source, numbered(1));
  CHECK_FALSE(readable(channel.wait_fd()));
  CHECK_FALSE(channel.arm());  // something is there already
  queued_event e;
  REQUIRE(channel.pop(e));
  CHECK(channel.arm());
  CHECK_FALSE(readable(channel.wait_fd()));
  channel.push(room_side::sink, numbered(2));
  CHECK(readable(channel.wait_fd()));
  REQUIRE(channel.pop(e));
  CHECK(channel.arm());
  CHECK_FALSE(readable(channel.wait_fd()));
}

TEST_CASE("two producers and a sleeping consumer lose no event and no wake-up") {
  constexpr std::uint64_t count = 20'000;
  event_channel channel(64);
  auto produce = [&](room_side side) {
    for (std::uint64_t n = 0; n < count; ++n) {
      channel.push(side, numbered(n));
      while (channel.backlogged(side)) {
        std::this_thread::yield();
        channel.flush(side);
      }
    }
  };
  std::thread source(produce, room_side::source), sink(produce, room_side::sink);
  std::uint64_t taken = 0;
  for (queued_event e; taken < 2 * count;) {
    if (channel.pop(e)) {
      ++taken;
    } else if (channel.arm()) {
      pollfd p{channel.wait_fd(), POLLIN, 0};
      REQUIRE(::poll(&p, 1, 20'000) == 1);  // a lost wake-up ends the test here
    }
  }
  source.join();
  sink.join();
  CHECK(taken == 2 * count);
}
