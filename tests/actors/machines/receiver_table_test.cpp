// The receiver machine: every state x every event.
#include "tests/actors/machines/rig.hpp"
#include "tests/actors/machines/table.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

// `failed` twice: with a source that may still write, and over. `resolving` twice: the engine's call or the
// peer is still missing.
const std::vector<std::string> states{"resolving", "unwanted",    "announced", "published",
                                      "succeeded", "quarantined", "failed"};

struct bench {
  rig r;
  receiver_machine m{key1, r.sink, "request-1", at(0s)};
  room_effects out;

  error publish() { return m.publish(rig::pages(10), tokens, sink_slot, at(2s), out); }
  void done(room_done_message message, row_reading row = rig::row()) {
    m.done(r.prefill(), message, row, at(3s), out);
  }

  void give_up() { m.abort({errc::injected, "", {}}, at(2s), out); }

  explicit bench(const std::string& state) { bring(state); }
  void bring(const std::string& state) {
    if (state != "unwanted") m.announce(at(1s), out);
    if (state == "resolving") return;
    m.peer_found(r.prefill(), at(1s), out);
    if (state == "unwanted" || state == "announced") return;
    if (state == "failed") return give_up();
    publish();
    if (state == "quarantined") return give_up();
    if (state == "succeeded") done(r.done());
  }
};

struct event {
  std::string name;
  std::function<std::string(bench&)> apply;
};
template <class Do>
event quiet(std::string name, Do apply) {
  return {std::move(name), [apply](bench& b) {
            apply(b);
            return std::string();
          }};
}

const std::vector<event> events{
    quiet("announce", [](bench& b) { b.m.announce(at(3s), b.out); }),
    {"publish",
     [](bench& b) {
       auto e = b.publish();
       return e ? std::string(to_string(e.code)) : std::string();
     }},
    quiet("abort",
          [](bench& b) {
            b.m.abort({errc::aborted, "", {}}, at(3s), b.out);
          }),
    quiet("peer found", [](bench& b) { b.m.peer_found(b.r.prefill(), at(3s), b.out); }),
    quiet("peer unavailable",
          [](bench& b) {
            b.m.peer_unavailable({errc::peer_refused, "no", {}}, at(3s), b.out);
          }),
    quiet("done", [](bench& b) { b.done(b.r.done()); }),
    quiet("done of another plan", [](bench& b) { b.done(b.r.done(key1, 11)); }),
    quiet("done without a row", [](bench& b) { b.done(b.r.done(), fail(errc::metadata_missing, "none")); }),
    quiet("done of an older attempt",
          [](bench& b) {
            b.done(b.r.done({{7}, {0}}));
          }),
    quiet("done of another peer",
          [](bench& b) { b.m.done(b.r.decode(), b.r.done(), rig::row(), at(3s), b.out); }),
    quiet("progress", [](bench& b) { b.m.progress(b.r.prefill(), rig::progress(8), at(3s), b.out); }),
    quiet("progress of an older attempt",
          [](bench& b) {
            b.m.progress(b.r.prefill(), rig::progress(8, {{7}, {0}}), at(3s), b.out);
          }),
    quiet("progress beyond the room",
          [](bench& b) { b.m.progress(b.r.prefill(), rig::progress(tokens + 1), at(3s), b.out); }),
    quiet("peer abort", [](bench& b) { b.m.peer_abort(b.r.prefill(), rig::abort(true), at(3s), b.out); }),
    quiet("peer abort of an older attempt",
          [](bench& b) {
            b.m.peer_abort(b.r.prefill(), rig::abort(true, {{7}, {0}}), at(3s), b.out);
          }),
    quiet("peer abort of another peer",
          [](bench& b) { b.m.peer_abort(b.r.decode(), rig::abort(true), at(3s), b.out); }),
    quiet("drained of another peer",
          [](bench& b) { b.m.drained(b.r.decode(), rig::drained(), at(3s), b.out); }),
    quiet("drained", [](bench& b) { b.m.drained(b.r.prefill(), rig::drained(), at(3s), b.out); }),
    quiet("drained of a newer attempt",
          [](bench& b) { b.m.drained(b.r.prefill(), rig::drained(key2), at(3s), b.out); }),
    quiet("peer lost",
          [](bench& b) {
            b.m.peer_lost(prefill_peer, {errc::peer_gone, "gone", {}}, at(3s), b.out);
          }),
    quiet("another peer lost",
          [](bench& b) {
            b.m.peer_lost(other_peer, {errc::peer_gone, "gone", {}}, at(3s), b.out);
          }),
    quiet("peer closed", [](bench& b) { b.m.peer_closed(prefill_peer, at(3s), b.out); }),
    quiet("another peer closed", [](bench& b) { b.m.peer_closed(other_peer, at(3s), b.out); }),
    quiet("tick early", [](bench& b) { b.m.tick(b.m.deadline() - 1ns, b.out); }),
    quiet("tick at the deadline", [](bench& b) { b.m.tick(b.m.deadline(), b.out); }),
};

std::string act(std::size_t state, std::size_t number) {
  bench b(states[state]);
  auto before = b.m.state();
  b.out.clear();
  auto line = events[number].apply(b);
  if (b.m.state() != before) line += (line.empty() ? "-> " : ", -> ") + std::string(to_string(b.m.state()));
  auto effects = text(b.out);
  return line.empty() || effects.empty() ? line + effects : line + ": " + effects;
}

}  // namespace

TEST_CASE("receiver: states are entered as named") {
  for (const auto& s : states) {
    bench b(s);
    auto named = s == "quarantined" ? "failed" : s == "unwanted" ? "resolving" : s;
    CHECK(to_string(b.m.state()) == named);
    CHECK(b.m.finished() == (s == "succeeded" || s == "failed"));
    CHECK((b.m.deadline() == time_point::max()) == b.m.finished());
    auto w = b.m.waits();
    INFO(s, ": ", w.who, ", ", w.what);
    CHECK(w.who.empty() == b.m.finished());
    CHECK(w.since <= at(3s));
  }
}

TEST_CASE("receiver: every state x every event") {
  std::vector<std::string> names;
  for (const auto& e : events) names.push_back(e.name);
  const table expected{
      {"announce", {{"unwanted", "-> announced: announce>2; waiting_for_input"}}},
      {"publish",
       {{"resolving", "room_state"},
        {"unwanted", "room_state"},
        {"announced", "-> published: exposed; publish>2; transferring"},
        {"published", "room_state"},
        {"succeeded", "room_state"},
        {"quarantined", "room_state"},
        {"failed", "room_state"}}},
      {"abort",
       {{"resolving", "-> failed: failed(aborted); released"},
        {"unwanted", "-> failed: failed(aborted); released"},
        {"announced", "-> failed: failed(aborted); abort(aborted)>2; released"},
        {"published", "-> failed: failed(aborted); abort(aborted)>2; quarantined"}}},
      {"peer found", {{"resolving", "-> announced: announce>2; waiting_for_input"}}},
      {"peer unavailable",
       {{"resolving", "-> failed: failed(peer_refused); released"},
        {"unwanted", "-> failed: failed(peer_refused); released"}}},
      {"done",
       {{"announced", "-> failed: failed(wire_malformed); abort(wire_malformed)>2; released"},
        {"published", "-> succeeded: success; released; room_result(success)>2"},
        {"succeeded", "room_result(success)>2"},
        {"quarantined", "released; free 5; room_result(injected)>2"},
        {"failed", "room_result(injected)>2"}}},
      {"done of another plan",
       {{"announced", "-> failed: failed(wire_malformed); abort(wire_malformed)>2; released"},
        {"published",
         "-> failed: failed(plan_mismatch); quarantined; released; free 5; room_result(plan_mismatch)>2"},
        {"succeeded", "room_result(success)>2"},
        {"quarantined", "released; free 5; room_result(injected)>2"},
        {"failed", "room_result(injected)>2"}}},
      {"done without a row",
       {{"announced", "-> failed: failed(wire_malformed); abort(wire_malformed)>2; released"},
        {"published",
         "-> failed: failed(metadata_missing); quarantined; released; free 5; "
         "room_result(metadata_missing)>2"},
        {"succeeded", "room_result(success)>2"},
        {"quarantined", "released; free 5; room_result(injected)>2"},
        {"failed", "room_result(injected)>2"}}},
      {"progress beyond the room",
       {{"published", "-> failed: failed(wire_malformed); abort(wire_malformed)>2; quarantined"}}},
      {"peer abort",
       {{"unwanted", "-> failed: failed(aborted); released; room_result(aborted)>2"},
        {"announced", "-> failed: failed(aborted); released; room_result(aborted)>2"},
        {"published", "-> failed: failed(aborted); quarantined; room_result(aborted)>2"},
        {"succeeded", "room_result(success)>2"},
        {"quarantined", "room_result(injected)>2"},
        {"failed", "room_result(injected)>2"}}},
      {"drained",
       {{"unwanted", "-> failed: failed(aborted); released"},
        {"announced", "-> failed: failed(aborted); released"},
        {"published", "-> failed: failed(aborted); quarantined; released; free 5"},
        {"quarantined", "released; free 5"}}},
      {"peer lost",
       {{"unwanted", "-> failed: failed(peer_gone); released"},
        {"announced", "-> failed: failed(peer_gone); released"},
        {"published", "-> failed: failed(peer_gone); quarantined; fence 2"},
        {"quarantined", "fence 2"}}},
      {"peer closed",
       {{"unwanted", "-> failed: failed(peer_gone); released"},
        {"announced", "-> failed: failed(peer_gone); released"},
        {"published", "-> failed: failed(peer_gone); quarantined; released; free 5"},
        {"quarantined", "released; free 5"}}},
      {"tick at the deadline",
       {{"resolving", "-> failed: failed(timed_out); released"},
        {"unwanted", "-> failed: failed(timed_out); released"},
        {"announced", "-> failed: failed(timed_out); abort(timed_out)>2; released"},
        {"published", "-> failed: failed(timed_out); abort(timed_out)>2; quarantined"},
        {"quarantined", "fence 2"}}},
  };
  check_table(states, names, expected, act);
}

}  // namespace handoff::testing
