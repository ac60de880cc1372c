// The prefill actor's conversation, message by message, under CAF's deterministic scheduler and its virtual
// clock.
#include "actors/prefill/prefill_actor.hpp"

#include "actors/runtime/composition.hpp"
#include "actors/runtime/verdict_queue.hpp"
#include "tests/actors/engine_fixture.hpp"

#include <caf/scheduler/test_coordinator.hpp>
#include <doctest/doctest.h>

using namespace handoff;

namespace {

struct testing_config : caf::actor_system_config {
  testing_config() { set("scheduler.policy", caf::atom("testing")); }
};

/// Ends every actor and runs before the system goes, because a pending delayed message would keep it for
/// ever.
struct actor_fixture {
  actor_fixture()
      : system(config), scheduler(dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())) {
    pool_description pool{"kv", 4, 64, {}};
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      pool_buffer b;
      b.layout.layer = layer;
      b.layout.kind = buffer_kind::latent;
      b.layout.page_tokens = 4;
      b.layout.pages = 64;
      b.layout.item_bytes = 32;
      b.layout.token_stride_bytes = 8;
      pool.buffers.push_back(b);
    }
    runtime_options options;
    options.config = test::config_for("prefill-0", "", "tcp");
    layout = std::make_shared<const layout_descriptor>(make_layout(options, {pool}));
    rows.resize(options.config.memory.slots * row_schema::row_bytes);
    events = std::make_shared<event_channel>(64);
    engine = system.spawn([this](transfer_engine_interface::pointer) { return record(); });
    room_desk_settings desk{
        layout, events, rows, options.config.memory.slots, 4, 16, std::chrono::minutes(10), {}};
    prefill = spawn_prefill(system, {make_sender_context(options.config, layout, {}, {}), desk, {}}, engine);
    peer.peer = {1};
    peer.session = {1};
    peer.identity = {"decode-0", {7}, {}, engine_role::decode};
    peer.layout = layout;
    peer.metadata_region = row_region(*layout);
  }

  ~actor_fixture() {
    caf::anon_send_exit(prefill, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(engine, caf::exit_reason::user_shutdown);
    scheduler.run();
  }

  transfer_engine_interface::behavior_type record() {
    return {[](const rank_actors&) {},
            [this](submit_call& m) { submitted.push_back(std::move(m.what)); },
            [this](const frame_call& m) { frames.push_back(m.message); },
            [](const connect_call&) {},
            [this](const fence_call& m) { fenced.push_back(m.peer); },
            [](no_new_rooms) {},
            [](const transport_batch&) {},
            [](const control_opened&) {},
            [](const control_received&) {},
            [](const control_closed&) {},
            [](const resolved&) {},
            [](tick) {},
            [](const status_call&) { return status_part{}; }};
  }

  void offer(room_id room, std::uint32_t first_page) {
    tell(prefill, offer_call{room, {{{0}, 0, 0, {{{first_page}, 2}}}}, 8, {}, "label"});
    scheduler.run();
  }

  void publish(room_key key) {
    announce_message a;
    a.key = key;
    tell(prefill, room_frame{peer, a});
    publish_message m;
    m.key = key;
    m.pages = {{{0}, 0, 0, {{{10}, 2}}}};
    tell(prefill, room_frame{peer, m});
    scheduler.run();
  }

  std::vector<room_event> taken() {
    std::vector<room_event> all;
    for (queued_event e; events->pop(e);) all.push_back(e.event);
    return all;
  }

  testing_config config;
  caf::actor_system system;
  caf::scheduler::test_coordinator& scheduler;
  std::shared_ptr<const layout_descriptor> layout;
  std::vector<std::byte> rows;
  std::shared_ptr<event_channel> events;
  transfer_engine_interface engine;
  prefill_interface prefill;
  peer_view peer;
  std::vector<transport::transfer> submitted;
  std::vector<room_message> frames;
  std::vector<peer_id> fenced;
};

}  // namespace

TEST_CASE_FIXTURE(
    actor_fixture,
    "a room costs its source one message per chunk and one for row and room_done, which come last") {
  offer({0}, 0);
  publish({{0}, {1}});
  tell(prefill, send_call{{0}, {0, 4}, false, {}});
  scheduler.run();
  REQUIRE(submitted.size() == 1);
  CHECK(submitted[0].last_blocks.empty());
  tell(prefill, send_call{{0}, {4, 8}, true, metadata_row{}});
  scheduler.run();
  REQUIRE(submitted.size() == 2);
  auto end = [&](std::size_t n) {
    tell(prefill, transfer_ended{{submitted[n].id, {1}, {}, true, 64, 2, 2, 0}});
    scheduler.run();
  };
  end(1);
  REQUIRE(submitted.size() == 2);  // the row waits for the first chunk too
  end(0);
  REQUIRE(submitted.size() == 3);
  CHECK(submitted[2].last_blocks.size() == 1);
  REQUIRE(submitted[2].notify);
  CHECK(submitted[2].notify->type == message_type::room_done);
  REQUIRE(frames.size() == 1);  // both chunks are there
  CHECK(std::get<progress_message>(frames[0]).delivered == std::vector<component_progress>{{{0}, 8}});

  end(2);
  tell(prefill, room_frame{peer, room_result_message{{{0}, {1}}, {}, {}, kv_poll::success, {}}});
  scheduler.run();
  auto seen = taken();
  REQUIRE(seen.size() >= 2);
  CHECK(seen[seen.size() - 2].poll == kv_poll::success);
  CHECK(seen.back().what == room_event::kind::released);
}

TEST_CASE_FIXTURE(actor_fixture, "an offer that nobody takes up fails by its bound, by the injected clock") {
  offer({3}, 0);
  taken();
  scheduler.advance_time(std::chrono::milliseconds(defaults::room_bootstrap_ms - 1));
  scheduler.run();
  CHECK(taken().empty());
  scheduler.advance_time(std::chrono::milliseconds(2));
  scheduler.run();
  auto seen = taken();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].code == errc::timed_out);
  CHECK(seen[1].what == room_event::kind::released);
}

TEST_CASE_FIXTURE(actor_fixture,
                  "an abort that comes before its room is remembered and fails the later offer") {
  tell(prefill,
       room_frame{peer, abort_message{{{5}, {1}}, {}, {}, false, {errc::aborted, "gone", "decode-0"}}});
  scheduler.run();
  REQUIRE(frames.size() == 1);
  CHECK(std::holds_alternative<drained_message>(frames[0]));
  offer({5}, 0);
  auto seen = taken();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].code == errc::aborted);
  CHECK(seen[1].what == room_event::kind::released);
}

TEST_CASE_FIXTURE(actor_fixture, "rooms beyond limits.rooms are refused by name, on both sides") {
  for (std::uint32_t i = 0; i < 4; ++i) offer({i}, 2 * i);
  taken();
  offer({9}, 20);
  auto seen = taken();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].code == errc::limit_exceeded);
  CHECK(std::string(seen[0].reason.data()).find("limits.rooms = 4") != std::string::npos);
  publish({{10}, {1}});
  REQUIRE(frames.size() == 2);  // one for the announce, one for the publish
  auto* refusal = std::get_if<abort_message>(&frames[0]);
  REQUIRE(refusal);
  CHECK(refusal->reason.code == errc::limit_exceeded);
}

TEST_CASE_FIXTURE(actor_fixture, "a late publish for an ended room hears why it ended") {
  offer({6}, 0);
  publish({{6}, {1}});
  tell(prefill, abort_call{{6}, {errc::aborted, "client left", {}}});
  scheduler.run();
  frames.clear();
  publish({{6}, {1}});
  REQUIRE(frames.size() == 2);  // one for the announce, one for the publish
  auto* answer = std::get_if<abort_message>(&frames[0]);
  REQUIRE(answer);
  CHECK(answer->reason.detail.find("client left") != std::string::npos);
}
