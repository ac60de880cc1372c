// The sender machine: every state x every event.
#include "tests/actors/machines/rig.hpp"
#include "tests/actors/machines/table.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

// `failed` twice: with a write in flight, and over. `giving_up`: the engine aborted after room_done.
const std::vector<std::string> states{"unclaimed", "offered",   "ready",    "sending", "confirming",
                                      "giving_up", "succeeded", "draining", "failed"};

struct bench {
  rig r;
  sender_machine m{{{7}, {0}}, r.source, at(0s)};
  room_effects out;

  void offer() { m.offer(rig::pages(), tokens, source_slot, 0s, "", at(1s), out); }
  void announce() { m.announce(r.decode(), rig::announce(), at(1s), out); }
  void publish() { m.publish(r.decode(), rig::publish(), at(1s), out); }
  error chunk() { return m.send({0, 8}, false, {}, at(2s), out); }
  error last() { return m.send({8, tokens}, true, rig::row(), at(2s), out); }
  void done(std::uint64_t id, errc code = errc::ok, bool drained = true) {
    transport::transfer_done d;
    d.id = {id};
    d.peer = decode_peer;
    if (code != errc::ok) d.result = {code, "injected by the test", {}};
    d.drained = drained;
    m.transfer_done(d, at(3s), out);
  }

  void give_up() { m.abort({errc::injected, "", {}}, at(2s), out); }

  explicit bench(const std::string& state) { bring(state); }
  void bring(const std::string& state) {
    announce();
    if (state == "unclaimed") return;
    offer();
    if (state == "offered") return;
    publish();
    if (state == "ready") return;
    if (state == "failed") return give_up();
    chunk();
    if (state == "draining") return give_up();
    if (state == "sending") return;
    done(1);
    last();
    if (state == "giving_up") return give_up();
    done(2);
    if (state == "succeeded") m.result(r.decode(), rig::positive(), at(3s), out);
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
template <class Do>
event answered(std::string name, Do apply) {
  return {std::move(name), [apply](bench& b) {
            error e = apply(b);
            return e ? std::string(to_string(e.code)) : std::string();
          }};
}

const std::vector<event> events{
    quiet("offer", [](bench& b) { b.offer(); }),
    answered("send",
             [](bench& b) {
               return b.m.send({8, 12}, false, {}, at(3s), b.out);
             }),
    answered("send last",
             [](bench& b) {
               return b.m.send({8, tokens}, true, rig::row(), at(3s), b.out);
             }),
    answered("send all",
             [](bench& b) {
               return b.m.send({0, tokens}, true, rig::row(), at(3s), b.out);
             }),
    quiet("abort",
          [](bench& b) {
            b.m.abort({errc::aborted, "", {}}, at(3s), b.out);
          }),
    quiet("announce", [](bench& b) { b.announce(); }),
    quiet("announce of a stranger",
          [](bench& b) { b.m.announce(b.r.decode(8), rig::announce(), at(3s), b.out); }),
    quiet("announce of a newer attempt",
          [](bench& b) { b.m.announce(b.r.decode(), rig::announce(key2), at(3s), b.out); }),
    quiet("announce of no attempt",
          [](bench& b) {
            b.m.announce(b.r.decode(), rig::announce({{7}, {0}}), at(3s), b.out);
          }),
    quiet("publish", [](bench& b) { b.publish(); }),
    quiet("publish of bad pages",
          [](bench& b) { b.m.publish(b.r.decode(), rig::publish(key1, 30), at(3s), b.out); }),
    quiet("result success", [](bench& b) { b.m.result(b.r.decode(), rig::positive(), at(3s), b.out); }),
    quiet("result failed", [](bench& b) { b.m.result(b.r.decode(), rig::negative(), at(3s), b.out); }),
    quiet("result of a newer attempt",
          [](bench& b) { b.m.result(b.r.decode(), rig::positive(key2), at(3s), b.out); }),
    quiet("result of a stranger",
          [](bench& b) { b.m.result(b.r.decode(8), rig::negative(), at(3s), b.out); }),
    quiet("peer abort", [](bench& b) { b.m.peer_abort(b.r.decode(), rig::abort(false), at(3s), b.out); }),
    quiet("peer abort of a stranger",
          [](bench& b) { b.m.peer_abort(b.r.decode(8), rig::abort(false), at(3s), b.out); }),
    quiet("peer lost",
          [](bench& b) {
            b.m.peer_lost(decode_peer, {errc::peer_gone, "gone", {}}, at(3s), b.out);
          }),
    quiet("another peer lost",
          [](bench& b) {
            b.m.peer_lost(other_peer, {errc::peer_gone, "gone", {}}, at(3s), b.out);
          }),
    quiet("peer closed", [](bench& b) { b.m.peer_closed(decode_peer, at(3s), b.out); }),
    quiet("chunk delivered", [](bench& b) { b.done(1); }),
    quiet("chunk failed", [](bench& b) { b.done(1, errc::transport_completion); }),
    quiet("chunk failed, not drained", [](bench& b) { b.done(1, errc::timed_out, false); }),
    quiet("row delivered", [](bench& b) { b.done(2); }),
    quiet("row failed", [](bench& b) { b.done(2, errc::transport_completion); }),
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

TEST_CASE("sender: states are entered as named") {
  for (const auto& s : states) {
    bench b(s);
    auto named = s == "draining" ? "failed" : s == "giving_up" ? "sending" : s;
    CHECK(to_string(b.m.state()) == named);
    CHECK(b.m.finished() == (s == "succeeded" || s == "failed"));
    CHECK((b.m.deadline() == time_point::max()) == b.m.finished());
    auto w = b.m.waits();
    INFO(s, ": ", w.who, ", ", w.what);
    CHECK(w.who.empty() == b.m.finished());
    CHECK(w.since <= at(3s));
  }
}

TEST_CASE("sender: every state x every event") {
  std::vector<std::string> names;
  for (const auto& e : events) names.push_back(e.name);
  const table expected{
      {"offer", {{"unclaimed", "-> offered"}}},
      {"send",
       {{"unclaimed", "room_state"},
        {"ready", "-> sending: transferring; exposed; write 4>1"},
        {"sending", "write 4>1"},
        {"confirming", "room_state"},
        {"giving_up", "room_state"},
        {"succeeded", "room_state"},
        {"draining", "room_state"},
        {"failed", "room_state"}}},
      {"send last",
       {{"unclaimed", "room_state"},
        {"offered", "coverage_gap"},
        {"ready", "coverage_gap"},
        {"sending", "write 4>1"},
        {"confirming", "room_state"},
        {"giving_up", "room_state"},
        {"succeeded", "room_state"},
        {"draining", "room_state"},
        {"failed", "room_state"}}},
      {"send all",
       {{"unclaimed", "room_state"},
        {"ready", "-> sending: transferring; row 3; exposed; write 4>1+done"},
        {"sending", "invalid_argument"},
        {"confirming", "room_state"},
        {"giving_up", "room_state"},
        {"succeeded", "room_state"},
        {"draining", "room_state"},
        {"failed", "room_state"}}},
      {"abort",
       {{"unclaimed", "-> failed: abort(aborted)>1; drained>1"},
        {"offered", "-> failed: failed(aborted); abort(aborted)>1; drained>1; released; free 3"},
        {"ready", "-> failed: failed(aborted); abort(aborted)>1; drained>1; released; free 3"},
        {"sending", "-> failed: failed(aborted); abort(aborted)>1; quarantined"},
        {"confirming", "abort(aborted)>1"}}},
      {"announce", {{"draining", "abort(injected)>1"}, {"failed", "abort(injected)>1; drained>1"}}},
      {"announce of a stranger",
       {{"unclaimed", "abort(room_state)>9; drained>9"},
        {"offered", "abort(room_state)>9; drained>9"},
        {"ready", "abort(room_state)>9; drained>9"},
        {"sending", "abort(room_state)>9; drained>9"},
        {"confirming", "abort(room_state)>9; drained>9"},
        {"giving_up", "abort(room_state)>9; drained>9"},
        {"draining", "abort(injected)>9"},
        {"failed", "abort(injected)>9; drained>9"}}},
      {"announce of a newer attempt",
       {{"unclaimed", "-> failed: abort(room_superseded)>1; drained>1"},
        {"offered",
         "-> failed: failed(room_superseded); abort(room_superseded)>1; drained>1; released; free 3"},
        {"ready",
         "-> failed: failed(room_superseded); abort(room_superseded)>1; drained>1; released; free 3"},
        {"sending", "-> failed: failed(room_superseded); abort(room_superseded)>1; quarantined"},
        {"confirming",
         "-> failed: failed(room_superseded); abort(room_superseded)>1; drained>1; released; free 3"},
        {"giving_up", "-> failed: failed(room_superseded); abort(room_superseded)>1; quarantined"}}},
      {"publish",
       {{"offered", "-> ready: waiting_for_input"},
        {"draining", "abort(injected)>1"},
        {"failed", "abort(injected)>1; drained>1"}}},
      {"publish of bad pages",
       {{"offered",
         "-> failed: failed(transport_region); abort(transport_region)>1; drained>1; released; free 3"},
        {"draining", "abort(injected)>1"},
        {"failed", "abort(injected)>1; drained>1"}}},
      {"result success",
       {{"unclaimed", "-> failed: abort(wire_malformed)>1; drained>1"},
        {"offered",
         "-> failed: failed(wire_malformed); abort(wire_malformed)>1; drained>1; released; free 3"},
        {"ready", "-> failed: failed(wire_malformed); abort(wire_malformed)>1; drained>1; released; free 3"},
        {"sending", "-> failed: failed(wire_malformed); abort(wire_malformed)>1; quarantined"},
        {"confirming", "-> succeeded: success; released; free 3"},
        {"giving_up", "-> succeeded: success; quarantined"}}},
      {"result failed",
       {{"unclaimed", "-> failed"},
        {"offered", "-> failed: failed(plan_mismatch); released; free 3"},
        {"ready", "-> failed: failed(plan_mismatch); released; free 3"},
        {"sending", "-> failed: failed(plan_mismatch); quarantined"},
        {"confirming", "-> failed: failed(plan_mismatch); released; free 3"},
        {"giving_up", "-> failed: failed(plan_mismatch); quarantined"}}},
      {"peer abort",
       {{"unclaimed", "-> failed: drained>1"},
        {"offered", "-> failed: failed(aborted); drained>1; released; free 3"},
        {"ready", "-> failed: failed(aborted); drained>1; released; free 3"},
        {"sending", "-> failed: failed(aborted); quarantined"},
        {"confirming", "-> failed: failed(aborted); drained>1; released; free 3"},
        {"giving_up", "-> failed: failed(aborted); quarantined"},
        {"succeeded", "drained>1"},
        {"failed", "drained>1"}}},
      {"peer abort of a stranger",
       {{"unclaimed", "abort(room_state)>9; drained>9"},
        {"offered", "abort(room_state)>9; drained>9"},
        {"ready", "drained>9"},
        {"sending", "drained>9"},
        {"confirming", "drained>9"},
        {"giving_up", "drained>9"},
        {"succeeded", "drained>9"},
        {"failed", "drained>9"}}},
      {"peer lost",
       {{"unclaimed", "-> failed"},
        {"offered", "-> failed: failed(peer_gone); released; free 3"},
        {"ready", "-> failed: failed(peer_gone); released; free 3"},
        {"sending", "-> failed: failed(peer_gone); quarantined"},
        {"confirming", "-> failed: failed(peer_gone); released; free 3"},
        {"giving_up", "-> failed: failed(peer_gone); quarantined"}}},
      {"peer closed",
       {{"unclaimed", "-> failed"},
        {"offered", "-> failed: failed(peer_gone); released; free 3"},
        {"ready", "-> failed: failed(peer_gone); released; free 3"},
        {"sending", "-> failed: failed(peer_gone); released; free 3"},
        {"confirming", "-> failed: failed(peer_gone); released; free 3"},
        {"giving_up", "-> failed: failed(peer_gone); released; free 3"},
        {"draining", "released; free 3"}}},
      {"chunk delivered", {{"sending", "progress>1"}, {"draining", "drained>1; released; free 3"}}},
      {"chunk failed",
       {{"sending",
         "-> failed: failed(transport_completion); abort(transport_completion)>1; drained>1; released; free "
         "3"},
        {"draining", "drained>1; released; free 3"}}},
      {"chunk failed, not drained",
       {{"sending", "-> failed: failed(timed_out); abort(timed_out)>1; quarantined"}}},
      {"row delivered", {{"giving_up", "-> confirming"}}},
      {"row failed", {}},  // the sink decides
      {"tick at the deadline",
       {{"unclaimed", "-> failed: abort(timed_out)>1; drained>1"},
        {"offered", "-> failed: failed(timed_out); abort(timed_out)>1; drained>1; released; free 3"},
        {"ready", "-> failed: failed(timed_out); abort(timed_out)>1; drained>1; released; free 3"},
        {"sending", "-> failed: failed(timed_out); abort(timed_out)>1; quarantined"},
        {"confirming", "-> failed: failed(timed_out); abort(timed_out)>1; drained>1; released; free 3"},
        {"giving_up", "-> failed: failed(injected); abort(injected)>1; quarantined"},
        {"draining", "fence 1"}}},
  };
  check_table(states, names, expected, act);
}

}  // namespace handoff::testing
