// The peer session machine: every state x every event, and how death is seen.
#include "actors/transfer_engine/peer_session_machine.hpp"

#include "tests/actors/machines/table.hpp"

#include <fmt/format.h>

namespace handoff::testing {
namespace {

using namespace std::chrono_literals;

time_point at(duration d) {
  return time_point{} + 1h + d;
}

struct bench {
  peer_session_context context;
  peer_session_machine m{{"decode-0", {17}, {}, engine_role::decode}, {1}, context, at(0s)};
  peer_session_effects out;
  time_point now = at(1s);

  void fail() { m.failed({errc::transport_completion, "broken", {}}, now, out); }
  void refuse() { m.control_refused({errc::io, "connection refused", {}}, now, out); }

  explicit bench(const std::string& state = "ready") { bring(state); }
  void bring(const std::string& state) {
    if (state == "connecting") return;
    m.connected(now, out);
    if (state == "silent" || state == "silent and uncontrolled") m.silent(now, out);
    if (state == "uncontrolled" || state == "silent and uncontrolled") m.control_lost(now, out);
    if (state == "broken") fail();
    if (state == "gone" || state == "closed") m.control_lost(now, out), refuse();
    if (state == "closed") m.closed(now, out);
    out.clear();
  }

  std::string take() {
    std::string text;
    for (const auto& e : std::exchange(out, {})) {
      if (!text.empty()) text += "; ";
      if (std::get_if<peer_ready_effect>(&e)) text += "ready";
      if (const auto* lost = std::get_if<rooms_lost_effect>(&e))
        text += fmt::format("lost({})", to_string(lost->reason.code));
      if (std::get_if<fence_peer_effect>(&e)) text += "fence";
      if (const auto* again = std::get_if<reconnect_control_effect>(&e))
        text += fmt::format("reconnect {}", again->number);
    }
    return text;
  }
};

// `suspect` for each of its reasons; `gone` before and after the endpoint is closed.
const std::vector<std::string> states{
    "connecting", "ready", "silent", "uncontrolled", "silent and uncontrolled", "broken", "gone", "closed"};

struct event {
  std::string name;
  std::function<void(bench&)> apply;
};
const std::vector<event> events{
    {"connected", [](bench& b) { b.m.connected(b.now, b.out); }},
    {"failed", [](bench& b) { b.fail(); }},
    {"silent", [](bench& b) { b.m.silent(b.now, b.out); }},
    {"heard", [](bench& b) { b.m.heard(b.now, b.out); }},
    {"closed", [](bench& b) { b.m.closed(b.now, b.out); }},
    {"control lost", [](bench& b) { b.m.control_lost(b.now, b.out); }},
    {"control reconnected", [](bench& b) { b.m.control_reconnected({17}, b.now, b.out); }},
    {"control of another incarnation", [](bench& b) { b.m.control_reconnected({18}, b.now, b.out); }},
    {"control refused", [](bench& b) { b.refuse(); }},
    {"tick early", [](bench& b) { b.m.tick(b.m.deadline() - 1ns, b.out); }},
    {"tick at the deadline", [](bench& b) { b.m.tick(b.m.deadline(), b.out); }},
};

}  // namespace

TEST_CASE("peer session: states are entered as named") {
  for (const auto& s : states) {
    bench b(s);
    auto named = s == "closed" ? "gone" : s == "connecting" || s == "ready" || s == "gone" ? s : "suspect";
    CHECK(to_string(b.m.state()) == named);
    CHECK(b.m.finished() == (s == "closed"));
    bool waits = s != "ready" && s != "gone" && s != "closed";
    CHECK((b.m.deadline() != time_point::max()) == waits);
    CHECK_FALSE(b.m.waits().what.empty());
  }
}

TEST_CASE("peer session: every state x every event") {
  std::vector<std::string> names;
  for (const auto& e : events) names.push_back(e.name);
  const table expected{
      {"connected", {{"connecting", "-> ready: ready"}}},
      {"failed",
       {{"connecting", "-> gone: lost(transport_completion); fence"},
        {"ready", "-> suspect: reconnect 1"},
        {"silent", "reconnect 1"}}},
      {"silent", {{"ready", "-> suspect"}}},
      {"heard", {{"silent", "-> ready"}}},
      {"closed",
       {{"connecting", "-> gone: lost(peer_gone)"},
        {"ready", "-> gone: lost(peer_gone)"},
        {"silent", "-> gone: lost(peer_gone)"},
        {"uncontrolled", "-> gone: lost(peer_gone)"},
        {"silent and uncontrolled", "-> gone: lost(peer_gone)"},
        {"broken", "-> gone: lost(peer_gone)"}}},
      {"control lost",
       {{"connecting", "-> gone: lost(peer_gone); fence"},
        {"ready", "-> suspect: reconnect 1"},
        {"silent", "reconnect 1"},
        {"uncontrolled", "other deadline"},
        {"silent and uncontrolled", "other deadline"},
        {"broken", "other deadline"}}},
      {"control reconnected", {{"uncontrolled", "-> ready"}, {"broken", "other deadline"}}},
      {"control of another incarnation",
       {{"uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"silent and uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"broken", "-> gone: lost(peer_gone); fence"}}},
      {"control refused",
       {{"uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"silent and uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"broken", "-> gone: lost(peer_gone); fence"}}},
      {"tick at the deadline",
       {{"connecting", "-> gone: lost(timed_out); fence"},
        {"silent", "-> gone: lost(peer_gone); fence"},
        {"uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"silent and uncontrolled", "-> gone: lost(peer_gone); fence"},
        {"broken", "-> gone: lost(transport_completion); fence"}}},
  };
  check_table(states, names, expected, [](std::size_t s, std::size_t e) {
    bench b(states[s]);
    auto before = b.m.state();
    auto deadline = b.m.deadline();
    events[e].apply(b);
    auto text = b.take();
    if (b.m.state() == before) {
      // A suspicion more or less shows in the deadline only.
      if (text.empty() && b.m.deadline() != deadline) text = "other deadline";
      return text;
    }
    auto arrow = "-> " + std::string(to_string(b.m.state()));
    return text.empty() ? arrow : arrow + ": " + text;
  });
}

TEST_CASE("peer session: silence makes suspect at once and gone after the bound, a beat ends it") {
  bench b;
  b.m.silent(at(2s), b.out);
  CHECK(b.m.state() == peer_session_state::suspect);
  b.m.heard(at(2500ms), b.out);
  CHECK(b.m.state() == peer_session_state::ready);
  CHECK(b.m.reason() == error{});
  b.m.silent(at(4s), b.out);
  CHECK(b.m.deadline() == at(5s));
  b.m.tick(at(5s), b.out);
  CHECK(b.take() == "lost(peer_gone); fence");
  CHECK(b.m.reason().detail ==
        "engine decode-0 dp0 pp0 cp0 tp0 (incarnation 0000000000000011, session 1) stayed silent for 1.0 s "
        "more");
}

TEST_CASE("peer session: an ended control connection is tried again, bounded in number and time") {
  bench b;
  b.m.control_lost(at(2s), b.out);
  CHECK(b.take() == "reconnect 1");
  b.m.control_lost(at(2100ms), b.out);  // nothing answered
  CHECK(b.m.deadline() == at(2350ms));
  b.m.tick(at(2350ms), b.out);
  CHECK(b.take() == "reconnect 2");
  b.m.control_reconnected({17}, at(2400ms), b.out);
  CHECK(b.m.state() == peer_session_state::ready);
  b.m.control_lost(at(3s), b.out);
  CHECK(b.take() == "reconnect 1");
  b.m.tick(at(4s), b.out);
  CHECK(b.take() == "lost(peer_gone); fence");
  CHECK(b.m.reason().detail.find("could not be reached again within 1.0 s") != std::string::npos);
}

TEST_CASE("peer session: reconnects have an upper number") {
  bench b;
  b.context.reconnect_delay = 1ms;
  b.m.control_lost(at(2s), b.out);
  for (int i = 1; i < 4; ++i) {
    b.m.control_lost(at(2s), b.out);
    b.m.tick(b.m.deadline(), b.out);
  }
  CHECK(b.take() == "reconnect 1; reconnect 2; reconnect 3; reconnect 4");
  b.m.control_lost(at(2s), b.out);
  CHECK(b.take() == "lost(peer_gone); fence");
}

TEST_CASE("peer session: after a fabric failure the control connection tells why") {
  bench dead, restarted, alive, silent;
  for (auto* b : {&dead, &restarted, &alive, &silent}) {
    b->fail();
    CHECK(b->take() == "reconnect 1");
  }
  dead.refuse();
  CHECK(dead.m.reason().code == errc::peer_gone);
  restarted.m.control_reconnected({18}, at(2s), restarted.out);
  CHECK(restarted.m.reason().detail.find("restarted as incarnation 0000000000000012") != std::string::npos);
  alive.m.control_reconnected({17}, at(1200ms), alive.out);
  CHECK(alive.m.state() == peer_session_state::suspect);  // its rooms' last words may still come
  CHECK(alive.m.deadline() == at(1200ms) + alive.context.last_words);
  alive.m.tick(alive.m.deadline(), alive.out);
  CHECK(alive.m.reason().code == errc::transport_completion);
  silent.m.tick(at(2s), silent.out);
  CHECK(silent.m.reason().code == errc::transport_completion);
  for (auto* b : {&dead, &restarted, &alive, &silent}) CHECK(b->m.state() == peer_session_state::gone);
}

TEST_CASE("peer session: a beat alone does not replace the control connection") {
  bench b("silent and uncontrolled");
  b.m.heard(at(1100ms), b.out);
  CHECK(b.m.state() == peer_session_state::suspect);
  b.m.control_reconnected({17}, at(1200ms), b.out);
  CHECK(b.m.state() == peer_session_state::ready);
}

TEST_CASE("peer session: the last transitions are kept with their reasons, and time per state") {
  bench b("connecting");
  b.m.connected(at(1s), b.out);
  for (int i = 0; i < 20; ++i) b.m.silent(at(2s), b.out), b.m.heard(at(3s), b.out);
  CHECK(b.m.log().size() == peer_session_machine::log_length);
  CHECK(b.m.log().back().to == peer_session_state::ready);
  CHECK(b.m.log().back().why == "heard again");
  CHECK(b.m.time_in(peer_session_state::connecting, at(9s)) == 1s);
  CHECK(b.m.time_in(peer_session_state::suspect, at(9s)) == 20s);
}

}  // namespace handoff::testing
