// A registry, a prefill and a decode engine in one process, and one room handed over between them.
#pragma once

#include "tests/actors/engine_fixture.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace handoff::test {

inline std::vector<page_id> ids(std::initializer_list<std::uint32_t> values) {
  std::vector<page_id> result;
  for (auto v : values) result.push_back({v});
  return result;
}

struct trio {
  explicit trio(const std::string& provider, const engine::configure& change = {})
      : bootstrap("registry", engine_role::bootstrap, "", provider, change),
        prefill("prefill-0", engine_role::prefill, bootstrap.rt->endpoint(), provider, change),
        decode("decode-0", engine_role::decode, bootstrap.rt->endpoint(), provider, change) {}

  std::string where() { return bootstrap.rt->endpoint(); }

  engine bootstrap, prefill, decode;
};

inline void fill(engine& e, std::uint64_t tokens, const std::vector<page_id>& page_list, int seed) {
  for (std::uint32_t buffer = 0; buffer < layers * 2; ++buffer)
    for (std::uint64_t t = 0; t < tokens; ++t)
      std::memset(e.token(buffer, page_list[t / page_tokens], t % page_tokens),
                  static_cast<int>(seed + 16 * buffer + t), token_bytes);
}

inline bool holds(engine& e, std::uint64_t tokens, const std::vector<page_id>& page_list, int seed) {
  for (std::uint32_t buffer = 0; buffer < layers * 2; ++buffer)
    for (std::uint64_t t = 0; t < tokens; ++t) {
      auto* bytes = e.token(buffer, page_list[t / page_tokens], t % page_tokens);
      for (std::uint64_t i = 0; i < token_bytes; ++i)
        if (bytes[i] != static_cast<std::byte>(seed + 16 * buffer + t)) return false;
    }
  return true;
}

/// One room all the way, chunk by chunk.
inline void hand_over(trio& t, room_id room, std::uint64_t tokens, const std::vector<page_id>& from,
                      const std::vector<page_id>& to, int seed) {
  t.prefill.seen.clear();
  t.decode.seen.clear();
  fill(t.prefill, tokens, from, seed);
  REQUIRE(!t.decode.rt->announce(room, t.where(), "request"));
  page_span source{{0}, 0, from, 0}, sink{{0}, 0, to, 0};
  REQUIRE(!t.prefill.rt->offer(room, std::span(&source, 1), tokens, std::chrono::seconds(60), "request"));
  auto announced = t.decode.wait_poll(room, kv_poll::waiting_for_input);
  REQUIRE_MESSAGE(announced, t.decode.log());
  REQUIRE_MESSAGE(announced->poll == kv_poll::waiting_for_input, announced->reason.data());
  REQUIRE(!t.decode.rt->publish(room, std::span(&sink, 1), tokens));

  auto first = tokens / 2 / page_tokens * page_tokens;
  metadata_row row{
      .first_token = seed, .cached_tokens = 7, .cached_device = 0, .cached_host = 0, .cached_storage = 0};
  if (first > 0) REQUIRE(!t.prefill.rt->send(room, {0, first}, nullptr));
  REQUIRE(!t.prefill.rt->send(room, {.first_token = first, .last_token = tokens, .last = true}, &row));

  auto done = t.decode.wait_poll(room, kv_poll::success);
  REQUIRE_MESSAGE(done, (t.decode.log() + t.prefill.log()));
  CHECK_MESSAGE(done->poll == kv_poll::success, done->reason.data());
  metadata_row received;
  CHECK(!t.decode.rt->commit(room, received));
  CHECK(received == row);
  CHECK(holds(t.decode, tokens, to, seed));
  auto sent = t.prefill.wait_poll(room, kv_poll::success);
  REQUIRE(sent);
  CHECK_MESSAGE(sent->poll == kv_poll::success, sent->reason.data());
  CHECK(t.prefill.wait_released(room));
  CHECK(t.decode.wait_released(room));
}

/// One page, for a room that the sink has announced already.
inline void hand_over_announced(engine& prefill, engine& sink, room_id room) {
  auto list = ids({static_cast<std::uint32_t>(room.value)});
  page_span span{{0}, 0, list, 0};
  metadata_row row{
      .first_token = 1, .cached_tokens = 0, .cached_device = 0, .cached_host = 0, .cached_storage = 0};
  fill(prefill, 4, list, static_cast<int>(room.value));
  REQUIRE(!prefill.rt->offer(room, std::span(&span, 1), 4, std::chrono::seconds(60), ""));
  REQUIRE(!prefill.rt->send(room, {.first_token = 0, .last_token = 4, .last = true}, &row));
  auto ready = sink.seen_poll(room, kv_poll::waiting_for_input);
  REQUIRE(ready);
  REQUIRE_MESSAGE(ready->poll == kv_poll::waiting_for_input, ready->reason.data());
  REQUIRE(!sink.rt->publish(room, std::span(&span, 1), 4));
  auto done = sink.wait_poll(room, kv_poll::success);
  REQUIRE(done);
  CHECK_MESSAGE(done->poll == kv_poll::success, done->reason.data());
  CHECK(holds(sink, 4, list, static_cast<int>(room.value)));
  CHECK(!sink.rt->commit(room, row));
  CHECK(sink.wait_released(room));
  CHECK(prefill.wait_released(room));
}

inline void check_baseline(engine& e) {
  auto s = e.rt->status();
  CHECK(s.rooms == 0);
  CHECK(s.leases == 0);
  CHECK(s.leased_pages == 0);
  CHECK(s.slots_used == 0);
  CHECK(s.transfers_active == 0);
}

}  // namespace handoff::test
