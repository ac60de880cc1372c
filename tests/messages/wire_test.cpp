// The checksum, the header, and what the decoder refuses in which words.
#include "messages/wire.hpp"

#include "messages/control_messages.hpp"
#include "messages/room_messages.hpp"
#include "tests/messages/probes.hpp"

#include <random>
#include <string_view>

#include <doctest/doctest.h>

using namespace handoff;
using test::one;
using test::payload_of;

namespace {

wire::byte_span raw(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::uint32_t crc_bit_by_bit(wire::byte_span data) {
  std::uint32_t crc = ~0u;
  for (auto b : data) {
    crc ^= static_cast<std::uint32_t>(b);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

/// The refusal that decoding `payload` as T gives.
template <class T>
error refusal_of(const wire::bytes& payload) {
  auto got = wire::decode_payload<T>(payload);
  return got ? error{} : got.error();
}
template <class T>
error refusal_of(const T& message) {
  return refusal_of<T>(payload_of(message));
}

template <class T>
void patch(wire::bytes& payload, std::size_t at, T value) {
  wire::detail::store(value, &payload[at], sizeof value);
}

// One struct in two versions, and a struct that holds itself.
struct part_v1 {
  std::uint32_t a = 1;
};
struct part_v2 {
  std::uint32_t a = 1;
  std::string b = "default";
};
struct tree {
  std::vector<tree> children;
};
template <class F>
auto inspect(F& f, part_v1& x) {
  return fields(f, "part", field("a", x.a));
}
template <class F>
auto inspect(F& f, part_v2& x) {
  return fields(f, "part", field("a", x.a), field("b", x.b));
}
template <class F>
auto inspect(F& f, tree& x) {
  return fields(f, "tree", field("children", x.children));
}

tree nested_tree(int depth) {
  tree t;
  if (depth > 1) t.children.push_back(nested_tree(depth - 1));
  return t;
}

wire::bytes sealed(wire::header h, std::size_t payload_bytes = 8) {
  wire::bytes message(wire::header_bytes + payload_bytes, std::byte{0x5a});
  wire::seal(h, message);
  return message;
}

}  // namespace

TEST_CASE("crc32c gives the published values") {
  CHECK(wire::crc32c({}) == 0);
  CHECK(wire::crc32c(raw("123456789")) == 0xe3069283);
  CHECK(wire::crc32c(wire::bytes(32, std::byte{0})) == 0x8a9136aa);
  CHECK(wire::crc32c(wire::bytes(32, std::byte{0xff})) == 0x62a8ab43);
}

TEST_CASE("crc32c is the same at every length and alignment, whole or in pieces") {
  std::mt19937_64 random(1);
  wire::bytes data(200);
  for (auto& b : data) b = static_cast<std::byte>(random());
  for (std::size_t from = 0; from < 8; ++from) {
    for (std::size_t size = 0; size <= 100; ++size) {
      INFO("from ", from, ", ", size, " bytes");
      auto part = wire::byte_span(data).subspan(from, size);
      CHECK(wire::crc32c(part) == crc_bit_by_bit(part));
      auto half = size / 3;
      CHECK(wire::crc32c(part.subspan(half), wire::crc32c(part.first(half))) == wire::crc32c(part));
    }
  }
}

TEST_CASE("the header's layout is the documented one") {
  wire::header h;
  h.type = message_type::publish;
  h.flags = 0x0102;
  h.credits = 0x0304;
  h.session.value = 0x05060708;
  h.sequence = 0x090a0b0c0d0e0f10;
  auto m = sealed(h, 3);
  auto at = [&](std::size_t offset, std::size_t width) { return wire::detail::load(&m[offset], width); };
  CHECK(at(0, 4) == wire::magic);
  CHECK(m[0] == std::byte{'H'});
  CHECK(at(4, 2) == 1);
  CHECK(at(6, 2) == 11);
  CHECK(at(8, 2) == 0x0102);
  CHECK(at(10, 2) == 0x0304);
  CHECK(at(12, 4) == 3);
  CHECK(at(16, 4) == 0x05060708);
  CHECK(at(24, 8) == 0x090a0b0c0d0e0f10);
  auto crc = at(20, 4);
  patch(m, 20, std::uint32_t{0});
  CHECK(crc == crc_bit_by_bit(m));
}

TEST_CASE("a header is refused for its reason") {
  wire::header h;
  h.type = message_type::announce;
  auto good = sealed(h);
  REQUIRE(wire::verify(good, 8));

  SUBCASE("too few bytes") {
    for (std::size_t size = 0; size < wire::header_bytes; ++size) {
      auto got = wire::read_header(wire::byte_span(good).first(size), 8);
      REQUIRE_FALSE(got);
      CHECK(got.error().code == errc::wire_malformed);
    }
  }
  SUBCASE("no message of handoff") {
    auto got = wire::read_header(raw("GET / HTTP/1.1\r\nHost: localhost:80\r\n"), 8);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == errc::wire_malformed);
    CHECK(got.error().detail ==
          "header: magic is 0x20544547 instead of 0x46444e48; the sender is not a handoff engine");
  }
  SUBCASE("a protocol beyond this build") {
    for (std::uint16_t protocol : {limits::protocol_min - 1, limits::protocol_max + 1}) {
      h.protocol = protocol;
      auto got = wire::read_header(sealed(h), 8);
      REQUIRE_FALSE(got);
      CHECK(got.error().code == errc::wire_version);
      CHECK(got.error().detail ==
            "header: protocol " + std::to_string(protocol) + ", this build speaks 1 to 1");
    }
  }
  SUBCASE("a payload beyond the receiver's limit") {
    auto got = wire::read_header(good, 7);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == errc::wire_too_large);
    CHECK(got.error().detail == "announce: payload of 8 bytes, at most 7 are accepted here");
  }
  SUBCASE("bytes missing, or left over") {
    auto longer = good;
    longer.push_back({});
    for (auto m : {wire::byte_span(longer), wire::byte_span(good).first(good.size() - 1)}) {
      auto got = wire::verify(m, 8);
      REQUIRE_FALSE(got);
      CHECK(got.error().code == errc::wire_malformed);
    }
  }
  SUBCASE("a wrong checksum") {
    good.back() ^= std::byte{1};
    auto got = wire::verify(good, 8);
    REQUIRE_FALSE(got);
    CHECK(got.error().detail.find("checksum") != std::string::npos);
  }
}

TEST_CASE("an unknown type is no error of the header") {
  wire::header h;
  h.type = static_cast<message_type>(9999);
  auto got = wire::verify(sealed(h), 8);
  REQUIRE(got);
  CHECK(got->type == h.type);
}

TEST_CASE("a refusal names message, field and byte") {
  publish_message publish;
  publish.pages.resize(4);
  publish.pages[3].runs.resize(64);
  auto payload = payload_of(publish);
  auto runs_at = payload.size() - 64 * 8 - 4;

  patch(payload, runs_at, std::uint32_t{4000000});
  CHECK(refusal_of<publish_message>(payload) ==
        error{errc::wire_malformed,
              "publish.pages[3].runs: count 4000000 exceeds the 512 bytes that are left, at byte " +
                  std::to_string(runs_at),
              {}});
  patch(payload, runs_at, std::uint32_t{65});
  CHECK(refusal_of<publish_message>(payload).detail.find("count 65 exceeds the 512 bytes") !=
        std::string::npos);

  payload.resize(13);
  CHECK(refusal_of<publish_message>(payload).detail ==
        "publish.source.dp: needs 2 bytes, 1 are left, at byte 12");
  payload.resize(3);
  CHECK(refusal_of<publish_message>(payload).detail ==
        "publish.key.room: needs 8 bytes, 3 are left, at byte 0");
}

TEST_CASE("numbers that are no enumerator and no boolean are refused") {
  auto result = payload_of(room_result_message{});
  const std::size_t verdict_at = 12 + 8 + 8;
  patch(result, verdict_at, std::uint8_t{5});
  CHECK(refusal_of<room_result_message>(result) ==
        error{errc::wire_malformed,
              "room_result.verdict: value 5 is out of range, the last is 4, at byte 28",
              {}});

  auto drained = payload_of(drained_message{});
  const std::size_t from_source_at = 12 + 8 + 8;
  for (unsigned number = 2; number <= 255; ++number) {
    patch(drained, from_source_at, static_cast<std::uint8_t>(number));
    CHECK(refusal_of<drained_message>(drained).code == errc::wire_malformed);
  }

  layout_descriptor layout;
  layout.buffers.resize(1);
  const auto beyond = static_cast<int>(last_enumerator(buffer_kind{})) + 1;
  layout.buffers[0].kind = static_cast<buffer_kind>(beyond);
  CHECK(refusal_of(layout).detail.find("layout_descriptor.buffers[0].kind: value " +
                                       std::to_string(beyond)) == 0);
}

TEST_CASE("an error code of a newer peer becomes unknown and keeps its text") {
  for (std::uint16_t number : {99, 141, 0xffff}) {
    abort_message abort;
    abort.reason = {static_cast<errc>(number), "the reactor is on fire", "prefill-9"};
    auto got = wire::decode_payload<abort_message>(payload_of(abort));
    REQUIRE(got);
    CHECK(got->reason == error{errc::unknown, "the reactor is on fire", "prefill-9"});
  }
}

TEST_CASE("texts of an error are cut when sent, never inside a character") {
  error e{errc::io, std::string(limits::error_detail_bytes - 1, 'x') + "\u00e4" + "tail",
          std::string(600, 'o')};
  auto got = wire::decode_payload<refusal_message>(payload_of(refusal_message{e}));
  REQUIRE(got);
  CHECK(got->reason.detail == std::string(limits::error_detail_bytes - 1, 'x'));
  CHECK(got->reason.origin == std::string(limits::error_detail_bytes, 'o'));
  e.detail = std::string(limits::error_detail_bytes, 'x');
  CHECK(for_wire(e).detail == e.detail);
}

TEST_CASE("strings and lists end at their limits") {
  CHECK_FALSE(refusal_of(one{std::string(limits::string_bytes, 'x')}));
  CHECK(refusal_of(one{std::string(limits::string_bytes + 1, 'x')}) ==
        error{errc::wire_too_large, "one.value: count 4097 exceeds the limit of 4096, at byte 0", {}});
  CHECK_FALSE(refusal_of(one{std::vector<std::uint16_t>(limits::list_length)}));
  CHECK(refusal_of(one{std::vector<std::uint16_t>(limits::list_length + 1)}) ==
        error{errc::wire_too_large, "one.value: count 65537 exceeds the limit of 65536, at byte 0", {}});
  CHECK_FALSE(refusal_of(one{std::vector<std::uint8_t>(limits::control_message_bytes / 2, 'x')}));
}

TEST_CASE("messages end at their own limits") {
  announce_message announce;
  announce.label.assign(limits::label_bytes, 'x');
  CHECK_FALSE(refusal_of(announce));
  announce.label += 'x';
  CHECK(refusal_of(announce) ==
        error{errc::wire_too_large, "announce.label: 129 bytes exceed the limit of 128", {}});
  announce.label.clear();
  announce.sink_ranks = 0;
  CHECK(refusal_of(announce).detail == "announce.sink_ranks: 0, at least one rank publishes");

  publish_message publish;
  publish.pages.resize(2);
  publish.pages[0].runs.resize(limits::publish_runs_per_part - 1);
  publish.pages[1].runs.resize(1);
  CHECK_FALSE(refusal_of(publish));
  publish.pages[1].runs.resize(2);
  CHECK(refusal_of(publish).detail == "publish.pages: 769 runs exceed the limit of 768");
  publish.pages.assign(limits::layout_components + 1, {});
  CHECK(refusal_of(publish).detail == "publish.pages: 65 components exceed the limit of 64");
  publish.pages.clear();
  publish.part = 256;
  publish.parts = 257;
  CHECK(refusal_of(publish).detail == "publish.parts: 257 parts exceed the limit of 256");
  publish.parts = 256;
  CHECK(refusal_of(publish).detail == "publish.part: 256 of 256, the first is 0");
  publish.part = publish.parts = 0;
  CHECK(refusal_of(publish));

  room_done_message done;
  done.coverage.resize(limits::layout_components + 1);
  CHECK(refusal_of(done).detail == "room_done.coverage: 65 components exceed the limit of 64");

  hello_message hello;
  hello.protocol_min = 3;
  hello.protocol_max = 2;
  CHECK(refusal_of(hello).detail == "hello.protocol_min: 3 is above protocol_max, 2");

  connect_request_message request;
  request.layout.buffers.resize(limits::layout_buffers + 1);
  CHECK(refusal_of(request) == error{errc::wire_too_large,
                                     "connect_request.layout.buffers: 4097 buffers exceed the limit of 4096",
                                     {}});
  request.layout.buffers.clear();
  request.layout.components.resize(limits::layout_components + 1);
  CHECK(refusal_of(request).code == errc::wire_too_large);
  request.layout.components.clear();
  request.layout.states.resize(limits::layout_components + 1);
  CHECK(refusal_of(request).code == errc::wire_too_large);
  request.layout.states.clear();
  request.endpoints.resize(2);
  request.endpoints[1].regions.resize(limits::layout_buffers + 1);
  CHECK(refusal_of(request).detail ==
        "connect_request.endpoints[1].regions: 4097 regions exceed the limit of 4096");
}

TEST_CASE("texts of an error that a peer did not cut are refused") {
  auto payload = payload_of(one{std::string(limits::error_detail_bytes + 1, 'x')});
  payload.insert(payload.begin(), {std::byte{8}, std::byte{0}});  // errc::io
  CHECK(refusal_of<error>(payload).detail == "error.detail: 513 bytes exceed the limit of 512");
}

TEST_CASE("a topology without ranks is refused") {
  for (auto axis : {&rank_topology::dp, &rank_topology::pp, &rank_topology::cp, &rank_topology::tp}) {
    register_rank_message m;
    m.topology.*axis = 0;
    auto refusal = refusal_of(m);
    CHECK(refusal.code == errc::wire_malformed);
    CHECK(refusal.detail.find("every axis has at least one rank") != std::string::npos);
  }
}

TEST_CASE("structs in a list grow at their ends, both ways") {
  one<std::vector<part_v2>> sent{{{7, "seven"}, {8, "eight"}}};
  auto older = wire::decode_payload<one<std::vector<part_v1>>>(payload_of(sent));
  REQUIRE(older);
  REQUIRE(older->value.size() == 2);
  CHECK(older->value[0].a == 7);
  CHECK(older->value[1].a == 8);

  auto newer = wire::decode_payload<one<std::vector<part_v2>>>(payload_of(*older));
  REQUIRE(newer);
  REQUIRE(newer->value.size() == 2);
  CHECK(newer->value[1].a == 8);
  CHECK(newer->value[1].b == "default");
}

TEST_CASE("structs nest to the limit and no deeper") {
  CHECK_FALSE(refusal_of(nested_tree(limits::nesting)));
  auto refusal = refusal_of(nested_tree(limits::nesting + 1));
  CHECK(refusal.code == errc::wire_too_large);
  CHECK(refusal.detail.find("structs nest deeper than the limit of 8") != std::string::npos);
  CHECK(refusal_of(nested_tree(1000)).code == errc::wire_too_large);
}
