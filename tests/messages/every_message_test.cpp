// Properties that every message has, checked over message_list.
#include "tests/messages/allocation_meter.hpp"
#include "tests/messages/filler.hpp"
#include "tests/messages/message_list.hpp"
#include "tests/messages/probes.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::test;

namespace {

constexpr std::uint64_t rounds = 20;

template <class T>
error verdict_of(const T& x) {
  if constexpr (requires { check_limits(x); }) {
    return check_limits(x);
  } else {
    return {};
  }
}

// A payload as the field of another struct: its length in front.
wire::bytes nested(const wire::bytes& payload) {
  wire::bytes out(4 + payload.size());
  wire::detail::store(payload.size(), out.data(), 4);
  std::copy(payload.begin(), payload.end(), out.begin() + 4);
  return out;
}

}  // namespace

TEST_CASE("every message type has its struct in the list, once") {
  std::multiset<message_type> listed(std::begin(without_struct), std::end(without_struct));
  for_each_message([&](auto m) { listed.insert(decltype(m)::type); });
  for (unsigned n = 0; n <= 0xffff; ++n) {
    auto type = static_cast<message_type>(n);
    INFO(n, " ", to_string(type));
    CHECK(listed.count(type) == (to_string(type) == "unknown" ? 0 : 1));
  }
}

TEST_CASE_TEMPLATE_DEFINE("every member is a field, in declared order", T, members) {
  member_probe probe;
  T x{};
  probe.check(x);
  CHECK(probe.complete);
}
TEST_CASE_TEMPLATE_APPLY(members, message_list);

TEST_CASE_TEMPLATE_DEFINE("a message comes back as it was sent", T, round_trip) {
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    INFO("seed ", seed);
    const auto sent = random_message<T>(seed);
    wire::header h;
    h.flags = static_cast<std::uint16_t>(seed);
    h.credits = static_cast<std::uint16_t>(seed * 3);
    h.session.value = static_cast<std::uint32_t>(seed * 0x01020304);
    h.sequence = seed * 0x0102030405060708;
    const auto bytes = wire::encode(sent, h);
    auto got_header = wire::verify(bytes, limits::control_message_bytes);
    REQUIRE(got_header);
    h.type = T::type;
    h.length = static_cast<std::uint32_t>(bytes.size() - wire::header_bytes);
    CHECK(*got_header == h);
    auto got = wire::decode_payload<T>(wire::byte_span(bytes).subspan(wire::header_bytes));
    REQUIRE(got);
    CHECK(*got == sent);
  }
}
TEST_CASE_TEMPLATE_APPLY(round_trip, message_list);

TEST_CASE_TEMPLATE_DEFINE("a cut payload is an older version at a field's border, an error elsewhere", T,
                          cut) {
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    auto sent = random_message<T>(seed);
    const auto payload = payload_of(sent);
    border_probe probe;
    inspect(probe, sent);
    REQUIRE(probe.borders.back() == payload.size());
    for (std::size_t size = 0; size <= payload.size(); ++size) {
      INFO("seed ", seed, ", ", size, " of ", payload.size(), " bytes");
      const wire::bytes shorter(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
      auto got = wire::decode_payload<T>(shorter);
      auto got_nested = wire::decode_payload<one<T>>(nested(shorter));
      auto border = std::find(probe.borders.begin(), probe.borders.end(), size);
      if (border == probe.borders.end()) {
        REQUIRE_FALSE(got);
        CHECK(got.error().code == errc::wire_malformed);
        CHECK_FALSE(got_nested);
        continue;
      }
      auto older = prefix_copier<T>::copy(sent, static_cast<std::size_t>(border - probe.borders.begin()));
      REQUIRE(bool(got) == !verdict_of(older));
      REQUIRE(bool(got_nested) == bool(got));
      if (!got) continue;
      CHECK(*got == older);
      CHECK(got_nested->value == older);
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(cut, message_list);

TEST_CASE_TEMPLATE_DEFINE("fields of a newer version are skipped", T, longer) {
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    INFO("seed ", seed);
    const auto sent = random_message<T>(seed);
    auto payload = payload_of(sent);
    for (std::uint64_t i = 0; i < seed; ++i) payload.push_back(static_cast<std::byte>(seed + i));
    auto got = wire::decode_payload<T>(payload);
    REQUIRE(got);
    CHECK(*got == sent);
    auto got_nested = wire::decode_payload<one<T>>(nested(payload));
    REQUIRE(got_nested);
    CHECK(got_nested->value == sent);
  }
}
TEST_CASE_TEMPLATE_APPLY(longer, message_list);

TEST_CASE_TEMPLATE_DEFINE("no flipped bit is taken for the message, none breaks the decoder", T, flips) {
  const auto sent = random_message<T>(5);
  auto bytes = wire::encode(sent);
  const auto payload = wire::byte_span(bytes).subspan(wire::header_bytes);
  REQUIRE(wire::verify(bytes, limits::control_message_bytes));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    INFO("bit ", bit);
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    CHECK_FALSE(wire::verify(bytes, limits::control_message_bytes));
    if (auto got = wire::decode_payload<T>(payload)) {
      auto again = wire::decode_payload<T>(payload_of(*got));
      REQUIRE(again);
      CHECK(*again == *got);
    } else {
      CHECK_FALSE(got.error().detail.empty());
    }
    bytes[bit / 8] ^= mask;
  }
}
TEST_CASE_TEMPLATE_APPLY(flips, message_list);

TEST_CASE_TEMPLATE_DEFINE("a hostile length is refused before memory is taken for it", T, hostile) {
  for (std::uint64_t seed = 1; seed <= rounds; ++seed) {
    auto sent = random_message<T>(seed);
    auto payload = payload_of(sent);
    length_probe probe;
    inspect(probe, sent);
    REQUIRE(probe.at == payload.size());
    for (auto at : probe.offsets) {
      const auto honest = wire::detail::load(&payload[at], 4);
      const auto left = payload.size() - at - 4;
      for (std::uint64_t claim :
           {std::uint64_t{0xffffffff}, std::uint64_t{0x80000000}, std::uint64_t{left + 1},
            std::uint64_t{limits::list_length + 1}, std::uint64_t{limits::string_bytes + 1}}) {
        if (claim <= left) continue;
        INFO("seed ", seed, ", byte ", at, ", claim ", claim);
        wire::detail::store(claim, &payload[at], 4);
        allocation_meter meter;
        auto got = wire::decode_payload<T>(payload);
        CHECK_FALSE(got);
        CHECK(meter.largest_bytes() <= 64 * payload.size() + 4096);
      }
      wire::detail::store(honest, &payload[at], 4);
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(hostile, message_list);
