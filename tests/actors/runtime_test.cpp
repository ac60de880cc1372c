// Rooms between runtimes of one process, over real libfabric providers: those that go well, those that are
// aborted from either side, and those that lose their peer.
#include "tests/actors/trio.hpp"

using namespace handoff;
using namespace handoff::test;

TEST_CASE("a room crosses between two runtimes with every byte and its metadata row") {
  for (const std::string provider : {"tcp", "shm"}) {
    CAPTURE(provider);
    trio t(provider);
    hand_over(t, {0}, 13, ids({9, 3, 4, 40}), ids({1, 60, 2, 7}), 1);
    hand_over(t, {UINT64_MAX}, 1, ids({5}), ids({1}), 2);
    hand_over(t, {7}, 64, ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
              ids({63, 62, 61, 60, 0, 1, 2, 3, 20, 22, 21, 23, 30, 31, 32, 33}), 3);
    CHECK(t.decode.rt->drain(std::chrono::seconds(5)).code == errc::ok);
    check_baseline(t.prefill);
    check_baseline(t.decode);
  }
}

TEST_CASE("a room's id may be used again once it was released: the next attempt stands in every message") {
  trio t("tcp");
  for (int round = 1; round <= 3; ++round) {
    hand_over(t, {42}, 9, ids({1, 2, 3}), ids({3, 2, 1}), round);
    CHECK(t.decode.seen.back().key.attempt.value == static_cast<unsigned>(round));
  }
}

TEST_CASE("the sink may announce and publish before the source offers, and the source before the sink") {
  trio t("tcp");
  hand_over(t, {1}, 4, ids({0}), ids({0}), 1);  // connected from here on
  std::vector<page_id> pages = ids({5, 6});
  page_span span{{0}, 0, pages, 0};
  metadata_row row{
      .first_token = 5, .cached_tokens = 0, .cached_device = 0, .cached_host = 0, .cached_storage = 0};

  REQUIRE(!t.decode.rt->announce({2}, t.where(), "sink first"));
  REQUIRE(t.decode.wait_poll({2}, kv_poll::waiting_for_input));
  REQUIRE(!t.decode.rt->publish({2}, std::span(&span, 1), 8));
  REQUIRE(t.decode.wait_poll({2}, kv_poll::transferring));
  REQUIRE(!t.prefill.rt->offer({2}, std::span(&span, 1), 8, std::chrono::seconds(60), "sink first"));
  REQUIRE(!t.prefill.rt->send({2}, {.first_token = 0, .last_token = 8, .last = true}, &row));
  CHECK(t.decode.wait_poll({2}, kv_poll::success)->poll == kv_poll::success);

  std::vector<page_id> others = ids({7, 8});
  page_span other{{0}, 0, others, 0};
  REQUIRE(!t.prefill.rt->offer({3}, std::span(&other, 1), 8, std::chrono::seconds(60), "source first"));
  REQUIRE(!t.prefill.rt->send({3}, {.first_token = 0, .last_token = 8, .last = true}, &row));
  REQUIRE(!t.decode.rt->announce({3}, t.where(), "source first"));
  REQUIRE(t.decode.wait_poll({3}, kv_poll::waiting_for_input));
  REQUIRE(!t.decode.rt->publish({3}, std::span(&other, 1), 8));
  CHECK(t.decode.wait_poll({3}, kv_poll::success)->poll == kv_poll::success);
}

TEST_CASE("an abort from either side ends the room on both with one reason and nothing held") {
  trio t("tcp");
  hand_over(t, {1}, 4, ids({0}), ids({0}), 1);
  std::uint64_t number = 10;
  for (bool by_source : {true, false})
    for (bool published : {true, false}) {
      CAPTURE(by_source);
      CAPTURE(published);
      room_id room{number++};
      auto pages = ids({4, 9, 5});
      page_span span{{0}, 0, pages, 0};
      REQUIRE(!t.prefill.rt->offer(room, std::span(&span, 1), 12, std::chrono::seconds(60), "aborted"));
      REQUIRE(!t.decode.rt->announce(room, t.where(), "aborted"));
      REQUIRE(t.decode.wait_poll(room, kv_poll::waiting_for_input));
      if (published) {
        REQUIRE(!t.decode.rt->publish(room, std::span(&span, 1), 12));
        REQUIRE(!t.prefill.rt->send(room, {.first_token = 0, .last_token = 4}, nullptr));
        REQUIRE(t.prefill.wait_poll(room, kv_poll::transferring));
      }
      REQUIRE(!(by_source ? t.prefill : t.decode).rt->abort(room, "the client went away"));
      auto source = t.prefill.wait_poll(room, kv_poll::failed),
           sink = t.decode.wait_poll(room, kv_poll::failed);
      REQUIRE(source);
      REQUIRE_MESSAGE(sink, (t.prefill.log() + "-- decode\n" + t.decode.log()));
      CHECK(source->code == errc::aborted);
      CHECK(sink->code == errc::aborted);
      CHECK(std::string(source->reason.data()) == sink->reason.data());
      CHECK(std::string(sink->reason.data()).find("the client went away") != std::string::npos);
      CHECK(t.prefill.wait_released(room));
      CHECK(t.decode.wait_released(room));
    }
  CHECK(t.decode.rt->quiesce({10}, std::chrono::seconds(1)));
  check_baseline(t.prefill);
  check_baseline(t.decode);
}

TEST_CASE("a room that its sink aborts before the source was found ends on the source too, at once") {
  engine bootstrap("registry", engine_role::bootstrap, "", "tcp");
  auto where = bootstrap.rt->endpoint();
  engine decode("decode-0", engine_role::decode, where, "tcp");
  REQUIRE(!decode.rt->announce({5}, "prefill-0", ""));
  REQUIRE(!decode.rt->abort({5}, "the client went away"));
  REQUIRE(decode.wait_released({5}));
  engine prefill("prefill-0", engine_role::prefill, where, "tcp");
  auto pages = ids({4, 9});
  page_span span{{0}, 0, pages, 0};
  REQUIRE(!prefill.rt->offer({5}, std::span(&span, 1), 8, std::chrono::seconds(600), ""));
  auto failed = prefill.wait_poll({5}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::aborted);
  CHECK(std::string(failed->reason.data()).find("the client went away") != std::string::npos);
  CHECK(prefill.wait_released({5}));
  check_baseline(prefill);
}

TEST_CASE("two engines that ask each other for a session at the same time get one each") {
  engine bootstrap("registry", engine_role::bootstrap, "", "tcp");
  auto where = bootstrap.rt->endpoint();
  engine one("one", engine_role::prefill, where, "tcp"), two("two", engine_role::prefill, where, "tcp");
  REQUIRE(!one.rt->announce({1}, "two", ""));
  REQUIRE(!two.rt->announce({2}, "one", ""));
  auto first = one.wait_poll({1}, kv_poll::waiting_for_input),
       second = two.wait_poll({2}, kv_poll::waiting_for_input);
  REQUIRE(first);
  REQUIRE(second);
  CHECK_MESSAGE(first->poll == kv_poll::waiting_for_input, first->reason.data());
  CHECK_MESSAGE(second->poll == kv_poll::waiting_for_input, second->reason.data());
  REQUIRE(!one.rt->abort({1}, ""));
  REQUIRE(!two.rt->abort({2}, ""));
  CHECK(one.wait_released({1}));
  CHECK(two.wait_released({2}));
}

TEST_CASE("a peer that closes fails its rooms on the other side in bounded time, by name") {
  for (const std::string provider : {"tcp", "shm"}) {
    CAPTURE(provider);
    trio t(provider);
    hand_over(t, {1}, 4, ids({0}), ids({0}), 1);
    auto pages = ids({4, 9});
    page_span span{{0}, 0, pages, 0};
    REQUIRE(!t.prefill.rt->offer({2}, std::span(&span, 1), 8, std::chrono::seconds(60), ""));
    REQUIRE(!t.decode.rt->announce({2}, t.where(), ""));
    REQUIRE(t.decode.wait_poll({2}, kv_poll::waiting_for_input));
    REQUIRE(!t.decode.rt->publish({2}, std::span(&span, 1), 8));
    REQUIRE(t.decode.wait_poll({2}, kv_poll::transferring));
    t.prefill.rt->close();
    auto failed = t.decode.wait_poll({2}, kv_poll::failed);
    REQUIRE(failed);
    CHECK(failed->code == errc::peer_gone);
    CHECK(std::string(failed->reason.data()).find("prefill-0") != std::string::npos);
    CHECK(t.decode.wait_released({2}));
    check_baseline(t.decode);
  }
}

TEST_CASE("engines of different model revisions refuse each other, and the room says both values") {
  engine bootstrap("registry", engine_role::bootstrap, "", "tcp");
  auto where = bootstrap.rt->endpoint();
  engine prefill("prefill-0", engine_role::prefill, where, "tcp", [](auto& c) { c.model.revision = "a"; });
  engine decode("decode-0", engine_role::decode, where, "tcp", [](auto& c) { c.model.revision = "b"; });
  REQUIRE(!decode.rt->announce({1}, where, ""));
  auto failed = decode.wait_poll({1}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::peer_incompatible);
  CHECK(std::string(failed->reason.data()).find("model_revision: prefill has \"a\", decode has \"b\"") !=
        std::string::npos);
  CHECK(prefill.log().find("model_revision: prefill has \"a\", decode has \"b\"") != std::string::npos);
  CHECK(decode.wait_released({1}));
}

TEST_CASE("a room for an engine that cannot be found fails within the connect bound") {
  engine lonely("decode-0", engine_role::decode, "127.0.0.1:1", "tcp", [](auto& c) {
    c.timeouts.connect_ms = 300;
    c.timeouts.probe_ms = 100;
    c.timeouts.retry_ms = 50;
  });
  REQUIRE(!lonely.rt->announce({1}, "127.0.0.1:1", ""));
  auto failed = lonely.wait_poll({1}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::peer_unknown);
  CHECK(std::string(failed->reason.data()).find("127.0.0.1:1") != std::string::npos);
  CHECK(lonely.wait_released({1}));
  check_baseline(lonely);
}

TEST_CASE("pages that another room holds fail the second room and leave the first alone") {
  trio t("tcp");
  auto pages = ids({4, 9});
  page_span span{{0}, 0, pages, 0};
  REQUIRE(!t.prefill.rt->offer({1}, std::span(&span, 1), 8, std::chrono::seconds(60), ""));
  REQUIRE(!t.prefill.rt->offer({2}, std::span(&span, 1), 8, std::chrono::seconds(60), ""));
  auto failed = t.prefill.wait_poll({2}, kv_poll::failed);
  REQUIRE(failed);
  CHECK(failed->code == errc::pages_conflict);
  CHECK(t.prefill.wait_released({2}));
  CHECK(t.prefill.rt->status().leased_pages == 2);
  REQUIRE(!t.prefill.rt->abort({1}, "done with it"));
  CHECK(t.prefill.wait_released({1}));
  check_baseline(t.prefill);
}

TEST_CASE("calls that cannot be served are refused at once and change nothing") {
  trio t("tcp");
  auto pages = ids({1, 2});
  page_span span{{0}, 0, pages, 0};
  auto& prefill = *t.prefill.rt;
  auto& decode = *t.decode.rt;
  auto offer = [&](room_id room, page_span s, std::uint64_t tokens) {
    return prefill.offer(room, std::span(&s, 1), tokens, std::chrono::seconds(60), "").code;
  };
  CHECK(offer({1}, {{7}, 0, pages, 0}, 8) != errc::ok);  // no such component
  CHECK(offer({1}, {{0}, 0, pages, 0}, 9) != errc::ok);  // a page short
  CHECK(offer({1}, {{0}, 2, pages, 0}, 8) != errc::ok);  // not on a page border
  auto twice = ids({1, 1}), outside = ids({1, 64});
  CHECK(offer({1}, {{0}, 0, twice, 0}, 8) != errc::ok);
  CHECK(offer({1}, {{0}, 0, outside, 0}, 8) != errc::ok);
  CHECK(prefill.send({1}, {0, 4}, nullptr).code == errc::room_unknown);
  CHECK(decode.publish({1}, std::span(&span, 1), 8).code == errc::room_unknown);
  metadata_row row;
  CHECK(decode.commit({1}, row).code == errc::room_state);
  CHECK(decode.announce({1}, "", "").code == errc::invalid_argument);
  CHECK(decode.announce({1}, t.where(), std::string(limits::label_bytes + 1, 'x')).code ==
        errc::invalid_argument);
  CHECK(offer({1}, span, 8) == errc::ok);
  CHECK(offer({1}, span, 8) == errc::room_duplicate);
  CHECK(prefill.send({1}, {0, 4, 0, UINT32_MAX, true}, nullptr).code == errc::invalid_argument);
  CHECK(prefill.send({1}, {4, 0}, nullptr).code == errc::invalid_argument);
  CHECK(!prefill.abort({99}, "unknown rooms are nobody's"));
  CHECK(prefill.start().code == errc::room_state);
  CHECK(prefill.register_pool({}).error().code == errc::room_state);
  REQUIRE(!prefill.abort({1}, ""));
  CHECK(t.prefill.wait_released({1}));
  prefill.close();
  CHECK(offer({2}, span, 8) == errc::closed);
  check_baseline(t.decode);
}
