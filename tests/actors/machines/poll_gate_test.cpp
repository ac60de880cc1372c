// Votes become verdicts: the minimum, in one sequence, terminal for ever.
#include "actors/poll_gate/poll_gate.hpp"

#include <doctest/doctest.h>

namespace handoff {
namespace {

constexpr room_key a{{0}, {1}}, b{{0}, {2}};
using enum kv_poll;

std::optional<gate_verdict> pass(poll_gate& gate, room_key key, std::uint32_t rank, kv_poll poll,
                                 error reason = {}, std::uint64_t proven = 0) {
  return gate.vote({key, rank, poll, std::move(reason), {proven}}).value();
}

}  // namespace

TEST_CASE("a group of one passes every change at once, numbered without gaps over all rooms") {
  poll_gate gate(1, 10);
  CHECK_FALSE(pass(gate, a, 0, bootstrapping));
  CHECK(pass(gate, a, 0, waiting_for_input)->sequence == 1);
  CHECK(pass(gate, b, 0, waiting_for_input)->sequence == 2);
  CHECK_FALSE(pass(gate, a, 0, waiting_for_input));
  auto last = pass(gate, a, 0, success, {}, 22);
  CHECK(last->sequence == 3);
  CHECK(last->key == a);
  CHECK(last->proven_tokens[0] == 22);
  CHECK_FALSE(pass(gate, a, 0, failed, {errc::aborted, "late", {}}));
}

TEST_CASE("the slowest rank decides") {
  poll_gate gate(3, 10);
  CHECK_FALSE(pass(gate, a, 0, transferring));
  CHECK_FALSE(pass(gate, a, 2, success, {}, 7));
  CHECK(pass(gate, a, 1, waiting_for_input)->poll == waiting_for_input);
  CHECK(pass(gate, a, 1, success, {}, 9)->poll == transferring);
  auto all = pass(gate, a, 0, success, {}, 8);
  CHECK(all->poll == success);
  CHECK(all->proven_tokens[0] == 7);
}

TEST_CASE("failed from one is failed for all at once, with the first reason") {
  poll_gate gate(3, 10);
  pass(gate, a, 0, success);
  auto verdict = pass(gate, a, 1, failed, {errc::timed_out, "first", "rank 1"});
  CHECK(verdict->poll == failed);
  CHECK(verdict->reason == error{errc::timed_out, "first", "rank 1"});
  CHECK_FALSE(pass(gate, a, 2, failed, {errc::aborted, "second", {}}));
  CHECK_FALSE(pass(gate, a, 2, success));
}

TEST_CASE("a late vote of a rank does not take it back") {
  poll_gate gate(2, 10);
  pass(gate, a, 0, transferring);
  CHECK_FALSE(pass(gate, a, 0, waiting_for_input));
  CHECK(pass(gate, a, 1, transferring)->poll == transferring);
}

TEST_CASE("rooms and ranks have limits, and forgotten rooms make room") {
  poll_gate gate(1, 1);
  pass(gate, a, 0, waiting_for_input);
  CHECK(gate.vote({b, 0, waiting_for_input, {}, {}}).error().code == errc::limit_exceeded);
  CHECK(gate.vote({a, 1, waiting_for_input, {}, {}}).error().code == errc::invalid_argument);
  gate.forget(a);
  CHECK(gate.rooms() == 0);
  CHECK(pass(gate, b, 0, waiting_for_input));
}

}  // namespace handoff
