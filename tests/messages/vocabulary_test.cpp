// Ids, error codes, poll states and the texts for people.
#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"
#include "messages/layout.hpp"
#include "messages/message_type.hpp"

#include <set>
#include <string>
#include <unordered_set>

#include <doctest/doctest.h>

using namespace handoff;

namespace {

// Lists every code once more: the compiler warns when one is missing here, the test when one is missing in
// the table of messages/error.cpp.
bool is_enumerator(errc code) {
  switch (code) {
    case errc::ok:
    case errc::unknown:
    case errc::internal:
    case errc::invalid_argument:
    case errc::limit_exceeded:
    case errc::closed:
    case errc::timed_out:
    case errc::aborted:
    case errc::io:
    case errc::config_syntax:
    case errc::config_key:
    case errc::config_type:
    case errc::config_range:
    case errc::config_relation:
    case errc::wire_malformed:
    case errc::wire_version:
    case errc::wire_unsupported:
    case errc::wire_too_large:
    case errc::peer_unknown:
    case errc::peer_refused:
    case errc::peer_gone:
    case errc::peer_incompatible:
    case errc::peer_unauthorized:
    case errc::peer_draining:
    case errc::layout_refused:
    case errc::transport_provider:
    case errc::transport_region:
    case errc::transport_post:
    case errc::transport_completion:
    case errc::transport_full:
    case errc::transport_fenced:
    case errc::transport_probe:
    case errc::room_duplicate:
    case errc::room_unknown:
    case errc::room_superseded:
    case errc::room_state:
    case errc::coverage_gap:
    case errc::plan_mismatch:
    case errc::metadata_missing:
    case errc::metadata_mismatch:
    case errc::pages_conflict:
    case errc::injected:
      return true;
  }
  return false;
}

template <class E>
void check_texts(E last) {
  std::set<std::string_view> seen{"invalid", ""};
  auto end = static_cast<unsigned>(last);
  for (unsigned n = 0; n <= end; ++n) CHECK(seen.insert(to_string(static_cast<E>(n))).second);
  CHECK(to_string(static_cast<E>(end + 1)) == "invalid");
}

}  // namespace

TEST_CASE("every error code has a name and a sentence of its own; no other number is one") {
  std::set<std::string_view> names, sentences;
  unsigned last = 0;
  for (unsigned n = 0; n <= 0xffff; ++n) {
    auto code = static_cast<errc>(n);
    INFO("number ", n);
    if (!is_enumerator(code)) {
      REQUIRE(errc_from_wire(static_cast<std::uint16_t>(n)) == errc::unknown);
      continue;
    }
    last = n;
    REQUIRE(errc_from_wire(static_cast<std::uint16_t>(n)) == code);
    CHECK(names.insert(to_string(code)).second);
    CHECK(sentences.insert(describe(code)).second);
    CHECK(describe(code).size() > 5);
    CHECK(describe(code).back() == '.');
  }
  CHECK(last == static_cast<unsigned>(last_enumerator(errc{})));
}

TEST_CASE("exit statuses follow the classes of the codes") {
  CHECK(exit_status(errc::ok) == 0);
  for (auto code : {errc::unknown, errc::internal, errc::io}) CHECK(exit_status(code) == 1);
  for (auto code : {errc::config_syntax, errc::config_relation}) CHECK(exit_status(code) == 2);
  for (auto code : {errc::wire_malformed, errc::wire_too_large, errc::peer_unknown, errc::layout_refused})
    CHECK(exit_status(code) == 3);
  for (auto code : {errc::transport_provider, errc::transport_probe}) CHECK(exit_status(code) == 4);
  for (auto code : {errc::room_duplicate, errc::pages_conflict, errc::injected})
    CHECK(exit_status(code) == 5);
}

TEST_CASE("an error's text says what happened and who saw it") {
  CHECK(to_string(error{errc::peer_gone, "it left", "decode-0 dp0 pp0 cp0 tp0"}) ==
        "peer_gone: it left (seen by decode-0 dp0 pp0 cp0 tp0)");
  CHECK(to_string(error{errc::peer_gone, {}, {}}) == "peer_gone: The peer died or restarted.");
  CHECK_FALSE(error{});
  CHECK(error{errc::io, {}, {}});
}

TEST_CASE("ids of different kinds do not mix") {
  static_assert(!std::is_convertible_v<room_id, transfer_id>);
  static_assert(!std::is_convertible_v<std::uint64_t, room_id>);
  static_assert(!std::is_convertible_v<page_id, std::uint32_t>);
  static_assert(!std::equality_comparable_with<page_id, slot_id>);
  CHECK(room_key{{1}, {9}} < room_key{{2}, {1}});
  CHECK(room_key{{1}, {1}} < room_key{{1}, {2}});
  std::unordered_set<room_key> keys;
  for (std::uint32_t i = 0; i < 100; ++i) keys.insert(room_key{{i % 10}, {i / 10}});
  CHECK(keys.size() == 100);
  CHECK(to_string(room_key{{7}, {1}}) == "room 7 attempt 1");
  CHECK(to_string(rank_coord{1, 2, 3, 4}) == "dp1 pp2 cp3 tp4");
}

TEST_CASE("poll states combine with MIN: a failure dominates, else the slowest decides") {
  const kv_poll in_order[] = {kv_poll::failed, kv_poll::bootstrapping, kv_poll::waiting_for_input,
                              kv_poll::transferring, kv_poll::success};
  int value = 0;
  for (auto a : in_order) {
    CHECK(static_cast<int>(a) == value++);
    CHECK(is_terminal(a) == (a == kv_poll::failed || a == kv_poll::success));
    for (auto b : in_order) {
      CHECK(combine(a, b) == (a < b ? a : b));
      CHECK(combine(a, b) == combine(b, a));
    }
  }
  CHECK(value == static_cast<int>(last_enumerator(kv_poll{})) + 1);
}

TEST_CASE("every enumerator has a text of its own") {
  check_texts(last_enumerator(kv_poll{}));
  check_texts(last_enumerator(memory_kind{}));
  check_texts(last_enumerator(buffer_kind{}));
  check_texts(last_enumerator(component_kind{}));
  check_texts(last_enumerator(engine_role{}));
  std::set<std::string_view> seen{""};
  for (unsigned n = 0; n <= 0xffff; ++n) {
    auto text = to_string(static_cast<message_type>(n));
    if (text != "unknown") CHECK(seen.insert(text).second);
  }
  CHECK(seen.size() > 20);
}
