// The receiver machine's flows: exposure, proof, and the ends of a lease.
#include "messages/limits.hpp"
#include "tests/actors/machines/rig.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

struct bench {
  rig r;
  receiver_machine m{key1, r.sink, "request-1", at(0s)};
  room_effects out;

  void announce() { m.announce(at(1s), out); }
  void found() { m.peer_found(r.prefill(), at(1s), out); }
  error publish() { return m.publish(rig::pages(10), tokens, sink_slot, at(2s), out); }
  void done(room_done_message message, row_reading row = rig::row()) {
    m.done(r.prefill(), message, row, at(3s), out);
  }
  /// Up to and with `publish`.
  void expose() { announce(), found(), publish(), out.clear(); }
  std::string take() { return text(std::exchange(out, {})); }
};

}  // namespace

TEST_CASE("receiver: a room goes through every state") {
  bench b;
  CHECK(b.m.poll() == kv_poll::bootstrapping);
  b.announce();
  CHECK(b.take() == "");
  b.found();
  CHECK(frames<announce_message>(b.out).at(0) == rig::announce());
  CHECK(b.take() == "announce>2; waiting_for_input");
  CHECK(b.publish() == error{});
  CHECK(frames<publish_message>(b.out).at(0) == rig::publish());
  CHECK(b.take() == "exposed; publish>2; transferring");
  CHECK(b.m.slot() == sink_slot);
  b.done(b.r.done());
  CHECK(all<verdict_effect>(b.out).at(0).proven_tokens == proven_by_component{tokens});
  CHECK(b.take() == "success; released; room_result(success)>2");
  CHECK(b.m.finished());
}

TEST_CASE("receiver: long page lists go out in parts of bounded size, in order") {
  bench b;
  auto pool = std::make_shared<layout_descriptor>(small_layout({{.page_tokens = 1, .pages = 4000}}));
  b.r.layout = pool;
  b.r.sink.layout = pool;
  b.announce(), b.found(), b.take();
  std::vector<page_run> runs;
  for (std::uint32_t i = 0; i < 1700; ++i) runs.push_back({{2 * i}, 1});
  REQUIRE(b.m.publish({{component_id{0}, 0, 0, runs}}, 1700, sink_slot, at(2s), b.out) == error{});
  auto parts = frames<publish_message>(b.out);
  REQUIRE(parts.size() == 3);
  std::vector<page_run> together;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(parts[i].part == i);
    CHECK(parts[i].parts == 3);
    wire::bytes payload;
    wire::encode_payload(parts[i], payload);
    CHECK(payload.size() <= limits::frame_bytes - wire::header_bytes);
    for (const auto& p : parts[i].pages) together.insert(together.end(), p.runs.begin(), p.runs.end());
  }
  CHECK(together == runs);
}

TEST_CASE("receiver: a fully cached prompt is published without a page and proven by its row") {
  bench b;
  b.announce(), b.found(), b.take();
  REQUIRE(b.m.publish({{component_id{0}, 0, tokens, {}}}, tokens, sink_slot, at(2s), b.out) == error{});
  CHECK(b.take() == "exposed; publish>2; transferring");
  b.done({key1, {}, {}, sink_slot, tokens, 0, 0, {}});
  CHECK(b.take() == "success; released; room_result(success)>2");
}

TEST_CASE("receiver: pages that cannot be served are refused and change nothing") {
  bench b;
  b.announce(), b.found(), b.take();
  auto code = [&](std::vector<component_pages> pages) {
    return b.m.publish(std::move(pages), tokens, sink_slot, at(2s), b.out).code;
  };
  CHECK(code(rig::pages(30)) == errc::transport_region);
  CHECK(code({{component_id{0}, 0, 0, {{{0}, 2}}}}) == errc::coverage_gap);
  CHECK(code({}) == errc::coverage_gap);
  CHECK(b.take() == "");
  CHECK(b.m.state() == receiver_state::announced);
  CHECK(b.publish() == error{});
}

TEST_CASE("receiver: success needs slot, tokens, coverage, bytes, plan and row, each compared") {
  struct damage {
    errc code;
    const char* says;
    std::function<void(room_done_message&)> apply;
  };
  const damage damages[] = {
      {errc::plan_mismatch, "metadata slot: engine prefill-0 dp0 pp0 cp0 tp0 wrote 6, this side planned 5",
       [](auto& m) { m.slot.value = 6; }},
      {errc::plan_mismatch, "tokens: engine prefill-0 dp0 pp0 cp0 tp0 wrote 21, this side planned 22",
       [](auto& m) { m.tokens = 21; }},
      {errc::coverage_gap,
       "wrote component 0 tokens [4, 22) 1408 bytes, this side planned component 0 tokens [0, 22)",
       [](auto& m) { m.coverage.at(0).first_token = 4; }},
      {errc::coverage_gap, "wrote nothing", [](auto& m) { m.coverage.clear(); }},
      {errc::coverage_gap, "bytes: ", [](auto& m) { m.bytes -= 1; }},
      {errc::plan_mismatch, "plan hash: ", [](auto& m) { m.plan_hash ^= 1; }},
  };
  for (const auto& d : damages) {
    bench b;
    b.expose();
    auto message = b.r.done();
    d.apply(message);
    b.done(message);
    INFO(b.m.reason().detail);
    CHECK(b.m.reason().code == d.code);
    CHECK(b.m.reason().detail.find(d.says) != std::string::npos);
    CHECK(frames<room_result_message>(b.out).at(0).reason == b.m.reason());
    auto name = to_string(d.code);
    CHECK(b.take() ==
          fmt::format("failed({}); quarantined; released; free 5; room_result({})>2", name, name));
  }
  for (auto code : {errc::metadata_missing, errc::metadata_mismatch}) {
    bench b;
    b.expose();
    b.done(b.r.done(), fail(code, "of another room"));
    CHECK(b.m.reason().code == code);
    CHECK(b.m.poll() == kv_poll::failed);
  }
}

TEST_CASE("receiver: exposed pages stay quarantined until the source has drained") {
  bench b;
  b.expose();
  b.m.abort({errc::aborted, "client left", {}}, at(3s), b.out);
  CHECK(b.take() == "failed(aborted); abort(aborted)>2; quarantined");
  b.m.drained(b.r.decode(), rig::drained(), at(4s), b.out);  // of somebody else
  b.m.drained(b.r.prefill(), rig::drained(key2), at(4s), b.out);
  CHECK(b.take() == "");
  b.m.drained(b.r.prefill(), rig::drained(), at(4s), b.out);
  CHECK(b.take() == "released; free 5");
}

TEST_CASE("receiver: a source that does not drain is fenced, and only then are the pages free") {
  bench b;
  b.expose();
  b.m.tick(at(2s) + b.r.sink.transfer_timeout, b.out);
  CHECK(b.take() == "failed(timed_out); abort(timed_out)>2; quarantined");
  auto deadline = b.m.deadline();
  b.m.tick(deadline, b.out);
  CHECK(b.take() == "fence 2");
  CHECK_FALSE(b.m.finished());
  auto again = b.m.deadline();
  CHECK(again == deadline + b.r.sink.quarantine_timeout);
  b.m.tick(again, b.out);
  CHECK(b.take() == "fence 2");
  b.m.peer_closed(prefill_peer, again, b.out);
  CHECK(b.take() == "released; free 5");
}

TEST_CASE("receiver: a lost source is fenced at once where pages were exposed") {
  bench before, after;
  before.announce(), before.found(), before.take();
  before.m.peer_lost(prefill_peer, {errc::peer_gone, "gone", {}}, at(3s), before.out);
  CHECK(before.take() == "failed(peer_gone); released");
  after.expose();
  after.m.peer_lost(prefill_peer, {errc::peer_gone, "gone", {}}, at(3s), after.out);
  CHECK(after.take() == "failed(peer_gone); quarantined; fence 2");
  after.m.peer_closed(prefill_peer, at(4s), after.out);
  CHECK(after.take() == "released; free 5");
}

TEST_CASE("receiver: room_done of a room that failed proves that its source has drained") {
  bench b;
  b.expose();
  b.m.abort({errc::aborted, "", {}}, at(3s), b.out);
  b.take();
  b.done(b.r.done());
  CHECK(b.take() == "released; free 5; room_result(aborted)>2");
  b.done(b.r.done());
  CHECK(b.take() == "room_result(aborted)>2");
}

TEST_CASE("receiver: an unequal layout is refused when the peer is found") {
  bench b;
  b.announce();
  auto peer = b.r.prefill();
  peer.layout = std::make_shared<layout_descriptor>(small_layout({{.page_tokens = 8}}));
  b.m.peer_found(peer, at(1s), b.out);
  CHECK(b.m.reason().code == errc::layout_refused);
  CHECK(b.take() == "failed(layout_refused); released");
}

TEST_CASE("receiver: the first reason is kept, with its origin") {
  bench b;
  b.expose();
  b.m.peer_abort(b.r.prefill(), rig::abort(true), at(3s), b.out);
  b.m.abort({errc::injected, "later", {}}, at(3s), b.out);
  b.m.peer_lost(prefill_peer, {errc::peer_gone, "later", {}}, at(3s), b.out);
  CHECK(b.m.reason() == rig::abort(true).reason);
  CHECK(all<verdict_effect>(b.out).size() == 1);
}

TEST_CASE("receiver: a room that fails says which tokens had arrived") {
  bench b;
  b.announce(), b.found(), b.publish();
  b.m.progress(b.r.prefill(), rig::progress(8), at(2s), b.out);
  b.m.progress(b.r.prefill(), rig::progress(16), at(2s), b.out);
  b.m.progress(b.r.prefill(), rig::progress(12), at(2s), b.out);  // an older word changes nothing
  b.take();
  b.m.peer_lost(prefill_peer, {errc::peer_gone, "gone", {}}, at(3s), b.out);
  CHECK(all<verdict_effect>(b.out).at(0).proven_tokens == proven_by_component{16});
}

TEST_CASE("receiver: a room that waits for its engine announces itself again, until its own bound") {
  bench b;
  b.r.sink.announce_interval = 25s;
  b.announce(), b.found();
  b.take();
  auto start = b.m.deadline() - 25s;
  for (auto when : {25s, 50s}) {
    CHECK(b.m.deadline() == start + when);
    b.m.tick(b.m.deadline(), b.out);
    CHECK(b.take() == "announce>2");
  }
  CHECK(b.m.deadline() == start + b.r.sink.waiting_timeout);
  b.m.tick(b.m.deadline(), b.out);
  CHECK(b.m.reason().code == errc::timed_out);
}

TEST_CASE("receiver: every wait ends by its own bound and says who it waited for") {
  auto expire = [](bench& b, duration bound, time_point since, const char* says) {
    CHECK(b.m.deadline() == since + bound);
    CHECK(b.m.waits().since == since);
    b.take();
    b.m.tick(b.m.deadline() - 1ns, b.out);
    CHECK(b.out.empty());
    b.m.tick(b.m.deadline(), b.out);
    CHECK(b.m.reason().code == errc::timed_out);
    INFO(b.m.reason().detail);
    CHECK(b.m.reason().detail.find(says) != std::string::npos);
  };
  bench resolving, announced, published;
  resolving.announce();
  expire(resolving, 120s, at(0s), "was not found and connected within 120.0 s");
  announced.announce(), announced.found();
  expire(announced, 60s, at(1s), "published no pages within 60.0 s");
  published.expose();
  expire(published, 60s, at(2s), "engine prefill-0 dp0 pp0 cp0 tp0 did not finish writing within 60.0 s");
}

TEST_CASE("receiver: transitions are logged and time is kept per state") {
  bench b;
  std::string log;
  b.r.sink.log = [&](const room_key&, std::string_view from, std::string_view to, time_point) {
    log += fmt::format("{}->{} ", from, to);
  };
  b.announce(), b.found(), b.publish(), b.done(b.r.done());
  CHECK(log == "resolving->announced announced->published published->succeeded ");
  CHECK(b.m.time_in(receiver_state::announced, at(9s)) == 1s);
  CHECK(b.m.time_in(receiver_state::published, at(9s)) == 1s);
  CHECK(b.m.time_in(receiver_state::succeeded, at(9s)) == 6s);
}

}  // namespace handoff::testing
