#include "actors/control/message_stream.hpp"

#include "messages/control_messages.hpp"

#include <algorithm>
#include <iterator>

#include <doctest/doctest.h>

using namespace handoff;

namespace {

/// Not inlined: g++ 12 warns of bounds in the vector's growth where it sees the constant length.
[[gnu::noinline]] void append_query(const std::string& engine, wire::bytes& out) {
  auto m = wire::encode(topology_query_message{engine});
  std::copy(m.begin(), m.end(), std::back_inserter(out));
}

}  // namespace

TEST_CASE("messages come out whole however the bytes are cut") {
  wire::bytes bytes;
  for (std::size_t i = 0; i < 3; ++i) append_query(std::string(i * 100 + 5, 'x'), bytes);
  for (std::size_t step : {1, 7, 31, 32, 33, 1000}) {
    control::message_stream stream(limits::control_message_bytes);
    std::size_t whole = 0;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      stream.push(wire::byte_span(bytes).subspan(at, std::min(step, bytes.size() - at)));
      for (;;) {
        auto next = stream.next();
        REQUIRE_FALSE(next.reason);
        if (!next.ready) break;
        auto m = wire::decode_payload<topology_query_message>(next.what.payload);
        REQUIRE(m);
        CHECK(m->engine.size() == whole++ * 100 + 5);
      }
    }
    CHECK(whole == 3);
    CHECK(stream.buffered() == 0);
  }
}

TEST_CASE("a message beyond what the peer may send yet is refused by its header alone") {
  control::message_stream stream(limits::control_hello_bytes);
  wire::bytes m;
  append_query(std::string(limits::string_bytes, 'x'), m);
  stream.push(wire::byte_span(m).first(wire::header_bytes));
  CHECK(stream.next().reason.code == errc::wire_too_large);
}
