// The sender machine's flows: what goes out in which order, and what ends it.
#include "tests/actors/machines/rig.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

struct bench {
  rig r;
  sender_machine m{{{7}, {0}}, r.source, at(0s)};
  room_effects out;

  void offer() { m.offer(rig::pages(), tokens, source_slot, 0s, "request-1", at(1s), out); }
  void announce(std::uint16_t ranks = 1, std::uint32_t sink = 0) {
    m.announce(r.decode(sink), rig::announce(key1, ranks), at(1s), out);
  }
  void publish(std::uint32_t sink = 0, std::uint64_t prefix = 0) {
    auto message = rig::publish();
    message.pages = rig::pages(10, prefix);
    m.publish(r.decode(sink), message, at(1s), out);
  }
  error send(layout::range what, bool last = false) {
    return m.send(what, last, last ? std::optional(rig::row()) : std::nullopt, at(2s), out);
  }
  void done(std::uint64_t id, error result = {}, bool drained = true, peer_id peer = decode_peer) {
    m.transfer_done({{id}, peer, std::move(result), drained, 0, 0, 0, 0}, at(3s), out);
  }
  void result(std::uint32_t sink = 0) { m.result(r.decode(sink), rig::positive(), at(4s), out); }
  /// What came out since the last call.
  std::string take() { return text(std::exchange(out, {})); }
};

room_done_message notice(const submit_effect& e) {
  auto decoded = wire::decode_payload<room_done_message>(e.what.notify->payload);
  REQUIRE(decoded);
  return *decoded;
}

}  // namespace

TEST_CASE("sender: a room in one chunk goes through every state") {
  bench b;
  CHECK(b.m.poll() == kv_poll::bootstrapping);
  b.offer();
  CHECK(b.m.key().attempt.value == 0);
  b.announce();
  CHECK(b.m.key() == key1);
  CHECK(b.take() == "");
  b.publish();
  CHECK(b.take() == "waiting_for_input");
  CHECK(b.send({0, tokens}, true) == error{});
  auto submitted = all<submit_effect>(b.out);
  auto rows = all<write_row_effect>(b.out);
  CHECK(b.take() == "transferring; row 3; exposed; write 4>1+done");
  CHECK(b.m.poll() == kv_poll::transferring);
  REQUIRE((submitted.size() == 1 && rows.size() == 1));
  CHECK(rows[0].stamp == key1);
  CHECK(rows[0].row == rig::row());
  const auto& t = submitted[0].what;
  CHECK(t.last_blocks == std::vector<transport::block>{{region_id{4}, 3 * 64, region_id{4}, 5 * 64, 64}});
  CHECK(t.notify->type == message_type::room_done);
  CHECK(t.timeout == b.r.source.transfer_timeout);
  CHECK(notice(submitted[0]) == b.r.done());
  b.done(1);
  CHECK(b.m.state() == sender_state::confirming);
  b.result();
  CHECK(b.take() == "success; released; free 3");
  CHECK(b.m.finished());
  CHECK(b.m.poll() == kv_poll::success);
  CHECK(b.m.label() == "request-1");
}

TEST_CASE("sender: the row waits until every earlier chunk was delivered, and tells of all of them") {
  bench b;
  b.offer(), b.announce(), b.publish(), b.take();
  CHECK(b.send({0, 8, 0, 1}) == error{});
  CHECK(b.send({0, 8, 1, 2}) == error{});
  CHECK(b.take() == "transferring; exposed; write 2>1; write 2>1");
  CHECK(b.send({8, tokens}, true) == error{});
  CHECK(b.take() == "write 4>1");
  b.done(2), b.done(3);
  CHECK(b.take() == "");
  b.done(1);
  auto submitted = all<submit_effect>(b.out);
  CHECK(b.take() == "progress>1; row 3; write 0>1+done");
  REQUIRE(submitted.size() == 1);
  CHECK(notice(submitted[0]) == b.r.done());
  b.done(4), b.result();
  CHECK(b.take() == "success; released; free 3");
}

TEST_CASE("sender: chunks that come before their destinations wait for them") {
  bench b;
  b.offer();
  CHECK(b.send({0, 8}) == error{});
  CHECK(b.send({8, tokens}, true) == error{});
  CHECK(b.take() == "");
  CHECK(b.m.state() == sender_state::offered);
  b.publish();  // overtook its announce
  CHECK(b.take() == "");
  b.announce();
  CHECK(b.take() == "waiting_for_input; transferring; exposed; write 4>1; write 4>1");
  b.done(1);
  b.done(2);
  CHECK(b.take() == "progress>1; progress>1; row 3; write 0>1+done");
}

TEST_CASE("sender: what the sink holds is not sent; the row goes out though nothing else does") {
  bench b;
  b.offer(), b.announce(), b.publish(0, tokens), b.take();
  CHECK(b.send({0, tokens}, true) == error{});
  auto submitted = all<submit_effect>(b.out);
  CHECK(b.take() == "transferring; row 3; exposed; write 0>1+done");
  CHECK(notice(submitted[0]).bytes == 0);
  CHECK(notice(submitted[0]).coverage.empty());

  bench part;
  part.offer(), part.announce(), part.publish(0, 8), part.take();
  CHECK(part.send({0, 8}) == error{});
  CHECK(part.take() == "transferring");
  CHECK(part.send({8, tokens}, true) == error{});
  CHECK(part.take() == "row 3; exposed; write 4>1+done");
}

TEST_CASE("sender: only what is owed must be sent before the last chunk") {
  bench b;
  b.offer(), b.announce(), b.publish(0, 8), b.take();
  CHECK(b.send({12, tokens}, true).code == errc::coverage_gap);
  CHECK(b.take() == "");
  CHECK(b.send({8, tokens}, true) == error{});
}

TEST_CASE("sender: a last chunk that leaves a gap is refused and changes nothing") {
  for (bool ready : {false, true}) {
    bench b;
    b.offer(), b.announce();
    if (ready) b.publish();
    b.take();
    CHECK(b.send({0, 8}) == error{});
    CHECK(b.send({8, 16, 0, 1}) == error{});
    b.take();
    auto e = b.send({16, tokens}, true);
    CHECK(e.code == errc::coverage_gap);
    CHECK(e.detail.find("token 8 of layer 1") != std::string::npos);
    CHECK(b.take() == "");
    CHECK(b.send({8, 16, 1, 2}) == error{});
    CHECK(b.send({16, tokens}, true) == error{});
  }
}

TEST_CASE("sender: chunks that cannot be served are refused and change nothing") {
  bench b;
  b.r.source.chunks_max = 2;
  b.offer(), b.announce(), b.publish(), b.take();
  CHECK(b.send({0, 6}).code == errc::invalid_argument);
  CHECK(b.send({0, 24}).code == errc::invalid_argument);
  CHECK(b.m.send({0, tokens}, true, {}, at(2s), b.out).code == errc::invalid_argument);
  CHECK(b.m.send({0, 8}, false, rig::row(), at(2s), b.out).code == errc::invalid_argument);
  CHECK(b.take() == "");
  CHECK(b.send({0, 8}) == error{});
  CHECK(b.send({4, 12}).code == errc::invalid_argument);
  CHECK(b.send({8, 16}) == error{});
  CHECK(b.send({16, tokens}, true).code == errc::limit_exceeded);
  CHECK(b.m.state() == sender_state::sending);
}

TEST_CASE("sender: parts of a publish count when all are here, in any order, each once") {
  bench b;
  b.offer(), b.announce();
  std::vector<publish_message> parts;
  for (std::uint16_t i = 0; i < 3; ++i)
    parts.push_back({key1,
                     {},
                     {},
                     i,
                     3,
                     sink_slot,
                     {{component_id{0}, 0, 0, {{{static_cast<std::uint32_t>(10 + 2 * i)}, 2}}}}});
  for (auto i : {2, 0, 2, 0}) b.m.publish(b.r.decode(), parts[static_cast<std::size_t>(i)], at(1s), b.out);
  CHECK(b.take() == "");
  b.m.publish(b.r.decode(), parts[1], at(1s), b.out);
  CHECK(b.take() == "waiting_for_input");
  CHECK(b.send({0, tokens}, true) == error{});
  CHECK(notice(all<submit_effect>(b.out).at(0)) == b.r.done());
}

TEST_CASE("sender: a publish that contradicts itself fails the room on both sides") {
  auto refused = [](auto change) {
    bench b;
    b.offer(), b.announce();
    publish_message first{key1, {}, {}, 0, 2, sink_slot, rig::pages(10)};
    publish_message second{key1, {}, {}, 1, 2, sink_slot, {}};
    change(first, second);
    b.m.publish(b.r.decode(), first, at(1s), b.out);
    b.m.publish(b.r.decode(), second, at(1s), b.out);
    INFO(to_string(b.m.reason()));
    // A part that comes after the end is answered once more.
    CHECK(b.take().rfind("failed(wire_malformed); abort(wire_malformed)>1; drained>1; released; free 3", 0) ==
          0);
  };
  refused([](auto&, auto& p) { p.parts = 3; });
  refused([](auto&, auto& p) { p.slot.value = 6; });
  refused([](auto&, auto& p) { p.part = 2; });
  refused([](auto& p, auto&) { p.parts = 0; });
  refused([](auto& p, auto&) { p.parts = 300; });
  refused([](auto&, auto& p) { p.pages = rig::pages(20, 4); });
}

TEST_CASE("sender: pages that the sink does not have are refused by name, on both sides") {
  bench b;
  b.announce();
  b.m.publish(b.r.decode(), rig::publish(key1, 30), at(1s), b.out);
  CHECK(b.take() == "");  // before the offer the room's tokens are not known
  b.offer();
  CHECK(b.m.reason().code == errc::transport_region);
  CHECK(b.m.reason().detail.find("pages [30, 30+6) lie outside of its 32 pages") != std::string::npos);
  CHECK(b.m.reason().detail.find("engine decode-0 dp0 pp0 cp0 tp0") != std::string::npos);
  CHECK(frames<abort_message>(b.out).at(0).reason == b.m.reason());
  CHECK(b.m.reason().origin == b.r.source.origin);
}

TEST_CASE("sender: bad pages of its own engine fail the room") {
  bench b;
  b.m.offer(rig::pages(30), tokens, source_slot, 0s, "", at(1s), b.out);
  CHECK(b.take() == "failed(transport_region); released; free 3");
}

TEST_CASE("sender: several sink ranks each get everything, and all must confirm") {
  bench b;
  b.offer(), b.announce(2, 0), b.announce(2, 1);
  b.publish(0);
  CHECK(b.take() == "");
  CHECK(b.send({0, 8}) == error{});
  b.publish(1);
  CHECK(b.take() == "waiting_for_input; transferring; exposed; write 4>1; write 4>2");
  CHECK(b.send({8, tokens}, true) == error{});
  CHECK(b.take() == "write 4>1; write 4>2");
  b.done(1), b.done(3);
  CHECK(b.take() == "progress>1; progress>1; row 3; write 0>1+done");
  b.done(5), b.result(0);
  CHECK(b.take() == "");
  CHECK(b.m.state() == sender_state::sending);
  b.done(2, {}, true, {2}), b.done(4, {}, true, {2});
  CHECK(b.take() == "progress>2; progress>2; write 0>2+done");
  b.done(6, {}, true, {2});
  CHECK(b.m.state() == sender_state::confirming);
  b.result(1);
  CHECK(b.take() == "success; released; free 3");
}

TEST_CASE("sender: one of several sinks that fails ends the room for all") {
  bench b;
  b.offer(), b.announce(2, 0), b.announce(2, 1), b.publish(0), b.publish(1), b.send({0, 8}), b.take();
  b.m.peer_abort(b.r.decode(1), rig::abort(false), at(3s), b.out);
  CHECK(b.take() == "failed(aborted); abort(aborted)>1; quarantined");
  b.done(2, {}, true, {2});
  CHECK(b.take() == "drained>2");
  b.done(1);
  CHECK(b.take() == "drained>1; released; free 3");
}

TEST_CASE("sender: sinks that disagree about their number fail the room") {
  bench b;
  b.offer(), b.announce(2, 0), b.announce(3, 1);
  CHECK(b.m.reason().code == errc::wire_malformed);
  CHECK(b.take() ==
        "failed(wire_malformed); abort(wire_malformed)>1; abort(wire_malformed)>2; "
        "drained>1; drained>2; released; free 3");
}

TEST_CASE("sender: a confirmation that overtakes the transfer's own end counts") {
  bench b;
  b.offer(), b.announce(), b.publish(), b.send({0, tokens}, true), b.take();
  b.result();
  CHECK(b.take() == "success; quarantined");
  CHECK_FALSE(b.m.finished());
  b.done(1, {errc::transport_completion, "acknowledgement lost", {}});
  CHECK(b.take() == "released; free 3");
  CHECK(b.m.finished());
}

TEST_CASE("sender: the first reason is kept, with its origin") {
  bench b;
  b.offer(), b.announce(), b.publish(), b.send({0, 8}), b.take();
  b.m.peer_abort(b.r.decode(), rig::abort(false), at(3s), b.out);
  auto first = b.m.reason();
  CHECK(first == rig::abort(false).reason);
  b.m.abort({errc::injected, "later", {}}, at(3s), b.out);
  b.done(1, {errc::transport_completion, "later still", {}});
  b.m.peer_lost(decode_peer, {errc::peer_gone, "too", {}}, at(3s), b.out);
  CHECK(b.m.reason() == first);
  CHECK(all<verdict_effect>(b.out).size() == 1);

  bench own;
  own.offer();
  own.m.abort({errc::aborted, "client left", {}}, at(3s), own.out);
  CHECK(own.m.reason().origin == own.r.source.origin);
}

TEST_CASE("sender: a write that does not drain is ended by the end of its own endpoint") {
  bench b;
  b.offer(), b.announce(), b.publish(), b.send({0, 8}), b.take();
  b.done(1, {errc::timed_out, "30 s", {}}, false);
  CHECK(b.take() == "failed(timed_out); abort(timed_out)>1; quarantined");
  auto deadline = b.m.deadline();
  CHECK(deadline == at(3s) + b.r.source.quarantine_timeout);
  b.m.tick(deadline, b.out);
  CHECK(b.take() == "fence 1");
  CHECK(b.m.deadline() > deadline);
  CHECK_FALSE(b.m.finished());
  b.m.peer_closed(decode_peer, deadline, b.out);
  CHECK(b.take() == "released; free 3");
  CHECK(b.m.finished());
}

TEST_CASE("sender: once room_done is on its way the sink decides about an abort") {
  auto prepared = [](bench& b) {
    b.offer(), b.announce(), b.publish(), b.send({0, tokens}, true), b.take();
    b.m.abort({errc::aborted, "client left", {}}, at(3s), b.out);
    CHECK(b.take() == "abort(aborted)>1");
    CHECK(b.m.deadline() == at(3s) + b.r.source.result_timeout);
  };
  bench late, early, silent;
  prepared(late), prepared(early), prepared(silent);
  late.done(1), late.result();
  CHECK(late.take() == "success; released; free 3");
  early.done(1);
  early.m.result(early.r.decode(), {key1, {}, {}, kv_poll::failed, {errc::aborted, "client left", "x"}},
                 at(4s), early.out);
  CHECK(early.take() == "failed(aborted); released; free 3");
  silent.m.tick(silent.m.deadline(), silent.out);
  CHECK(silent.take() == "failed(aborted); abort(aborted)>1; quarantined");
}

TEST_CASE("sender: a sink that lost a chunk hears no room_done, though another sink decides about the room") {
  bench b;
  b.offer(), b.announce(2, 0), b.announce(2, 1), b.publish(0), b.publish(1);
  b.send({0, 8}), b.send({8, tokens}, true);
  b.done(1), b.done(3), b.take();
  b.done(2, {errc::transport_completion, "lost", {}}, true, {2});
  CHECK(b.take() == "abort(transport_completion)>1; abort(transport_completion)>2");
  b.done(4, {}, true, {2});
  CHECK(b.take() == "");
  b.done(5), b.result(0), b.take();
  b.m.tick(b.m.deadline(), b.out);
  CHECK(b.m.reason().code == errc::transport_completion);
  CHECK(b.m.finished());
}

TEST_CASE("sender: a room that its sinks ended is told to the engine that comes late") {
  bench b;
  b.announce();
  b.m.peer_abort(b.r.decode(), rig::abort(false), at(1s), b.out);
  CHECK(b.take() == "drained>1");
  CHECK(b.m.finished());
  b.offer();
  CHECK(b.take() == "failed(aborted); released; free 3");
}

TEST_CASE("sender: messages of an older attempt change nothing") {
  bench b;
  b.offer();
  b.m.announce(b.r.decode(), rig::announce(key2), at(1s), b.out);
  CHECK(b.m.key() == key2);
  b.m.publish(b.r.decode(), rig::publish(key1), at(1s), b.out);
  b.m.peer_abort(b.r.decode(), rig::abort(false, key1), at(1s), b.out);
  b.m.announce(b.r.decode(), rig::announce(key1), at(1s), b.out);
  b.m.result(b.r.decode(), rig::negative(key1), at(1s), b.out);
  CHECK(b.take() == "");
  b.m.publish(b.r.decode(), rig::publish(key2), at(1s), b.out);
  CHECK(b.take() == "waiting_for_input");
}

TEST_CASE("sender: every wait ends by its own bound and says who it waited for") {
  auto expire = [](bench& b, duration bound, time_point since, const char* says) {
    CHECK(b.m.deadline() == since + bound);
    CHECK(b.m.waits().since <= since);
    b.take();
    b.m.tick(b.m.deadline() - 1ns, b.out);
    CHECK(b.out.empty());
    b.m.tick(b.m.deadline(), b.out);
    CHECK(b.m.reason().code == errc::timed_out);
    INFO(b.m.reason().detail);
    CHECK(b.m.reason().detail.find(says) != std::string::npos);
  };
  bench unclaimed, offered, half, ready, sending, confirming;
  unclaimed.announce();
  expire(unclaimed, 120s, at(0s), "offered nothing");
  offered.offer();
  expire(offered, 120s, at(1s), "a sink rank that did not announce");
  half.offer(), half.announce();
  expire(half, 120s, at(1s), "engine decode-0 dp0 pp0 cp0 tp0 owed its announce and pages");
  ready.offer(), ready.announce(), ready.publish();
  expire(ready, 60s, at(1s), "sent no chunk");
  sending.offer(), sending.announce(), sending.publish(), sending.send({0, 8});
  expire(sending, 60s, at(2s), "not everything was sent");
  confirming.offer(), confirming.announce(), confirming.publish(), confirming.send({0, tokens}, true);
  confirming.done(1);
  expire(confirming, 10s, at(3s), "engine decode-0 dp0 pp0 cp0 tp0 did not confirm");
}

TEST_CASE("sender: an offer's lease bounds the wait for a sink, and every announce renews it, bounded") {
  bench b;
  b.m.offer(rig::pages(), tokens, source_slot, 30s, "", at(1s), b.out);
  CHECK(b.m.deadline() == at(31s));
  auto announce = [&](duration when) { b.m.announce(b.r.decode(), rig::announce(), at(when), b.out); };
  for (auto when = 20s; when <= 150s; when += 10s) {
    announce(when);
    CHECK(b.m.deadline() == at(when + 30s));
  }
  announce(190s);  // the first came at 20 s, and renewals end 180 s later
  CHECK(b.m.deadline() == at(200s));
  b.m.announce(b.r.decode(8), rig::announce(), at(199s), b.out);  // a stranger renews nothing
  CHECK(b.m.deadline() == at(200s));
  b.m.tick(at(200s), b.out);
  CHECK(b.m.reason().code == errc::timed_out);
}

TEST_CASE("sender: a short lease lasts until two announces in a row were lost") {
  bench b;
  b.m.offer(rig::pages(), tokens, source_slot, 1s, "", at(1s), b.out);
  CHECK(b.m.deadline() == at(2s));
  b.m.announce(b.r.decode(), rig::announce(), at(1500ms), b.out);
  CHECK(b.m.deadline() == at(1500ms) + 3 * b.r.source.announce_interval);
}

TEST_CASE("sender: after each chunk the sink hears what has arrived in every layer, from its prefix on") {
  bench b;
  b.offer(), b.announce();
  auto pages = rig::publish();
  pages.pages[0].prefix_tokens = 4;
  b.m.publish(b.r.decode(), pages, at(1s), b.out);
  b.take();
  auto chunk = [&](layout::range what) { REQUIRE(b.m.send(what, false, {}, at(2s), b.out) == error{}); };
  chunk({0, 8, 0, 1});
  chunk({12, 16});
  chunk({0, 8, 1, 2});
  chunk({8, 12});
  b.take();
  b.done(1);
  CHECK(b.take() == "");  // one layer of two
  b.done(2);
  CHECK(b.take() == "");  // a gap before it
  b.done(3);
  CHECK(frames<progress_message>(b.out).at(0) == rig::progress(8));
  b.take();
  b.done(4);
  CHECK(frames<progress_message>(b.out).at(0) == rig::progress(16));
}

TEST_CASE("sender: transitions are logged and time is kept per state") {
  bench b;
  std::string log;
  b.r.source.log = [&](const room_key& key, std::string_view from, std::string_view to, time_point) {
    log += fmt::format("{}:{}->{} ", key.attempt.value, from, to);
  };
  b.offer(), b.announce(), b.publish(), b.send({0, tokens}, true), b.done(1), b.result();
  CHECK(log ==
        "0:unclaimed->offered 1:offered->ready 1:ready->sending 1:sending->confirming "
        "1:confirming->succeeded ");
  CHECK(b.m.time_in(sender_state::unclaimed, at(9s)) == 1s);
  CHECK(b.m.time_in(sender_state::ready, at(9s)) == 1s);
  CHECK(b.m.time_in(sender_state::sending, at(9s)) == 1s);
  CHECK(b.m.time_in(sender_state::confirming, at(9s)) == 1s);
  CHECK(b.m.time_in(sender_state::succeeded, at(9s)) == 5s);
}

}  // namespace handoff::testing
