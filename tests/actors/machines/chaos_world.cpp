#include "tests/actors/machines/chaos_world.hpp"

#include <algorithm>

namespace handoff::testing {
namespace {

constexpr room_key key{{7}, {2}}, stale_key{{7}, {1}};
constexpr std::uint64_t page_bytes = 64;

}  // namespace

chaos_world::chaos_world(std::uint64_t seed, weather w, tally& counts)
    : random_(seed), weather_(w), counts_(&counts) {
  for (std::size_t region = 0; region < 4; ++region) {
    source_memory_.emplace_back(32 * page_bytes);
    sink_memory_.emplace_back(32 * page_bytes, 0xee);
    for (auto& byte : source_memory_.back()) byte = static_cast<std::uint8_t>(random_() % 200);
  }
  rig_.sink.announce_interval = 100ms;
  prefix_ = random_() % 4 == 0 ? tokens : random_() % 3 * 4;
  for (std::uint64_t first = 0; first < tokens;) {
    auto last = std::min<std::uint64_t>(tokens, first + 4 * (1 + random_() % 4));
    auto layer = static_cast<std::uint32_t>(random_() % 2);
    if (layer != 0) chunks_.push_back({first, last, 0, layer});
    chunks_.push_back({first, last, layer, UINT32_MAX});
    first = last;
  }
  plan_engines();
  plan_faults();
}

// When the two engines call, if they do.
void chaos_world::plan_engines() {
  if (!chance(weather_.absent)) after(delay(0, 400), [this] { offer(); });
  after(delay(0, 400), [this] {
    sink_.emplace(key, rig_.sink, "request-1", now_);
    sink_end_.known = true;
    step_sink("announce", [this](auto& m, auto& out) { m.announce(now_, out); });
  });
  if (chance(weather_.absent / 2))
    after(delay(401, 500), [this] {
      step_sink("peer_unavailable", [this](auto& m, auto& out) {
        m.peer_unavailable({errc::peer_refused, "not today", {}}, now_, out);
      });
    });
  else
    after(delay(401, 500), [this] {
      step_sink("peer_found", [this](auto& m, auto& out) { m.peer_found(rig_.prefill(), now_, out); });
    });
}

void chaos_world::plan_faults() {
  if (chance(weather_.abort))
    after(delay(0, 1500), [this] {
      count("abort of the source");
      abort_source({errc::aborted, "the source's client left", {}});
    });
  if (chance(weather_.abort))
    after(delay(0, 1500), [this] {
      count("abort of the sink");
      step_sink("abort", [this](auto& m, auto& out) {
        m.abort({errc::aborted, "the sink's client left", {}}, now_, out);
      });
    });
  if (chance(weather_.session_loss)) after(delay(0, 1500), [this] { lose_session(); });
  if (chance(weather_.stale))
    after(delay(450, 1500), [this] {
      count("frame of an older attempt");
      bool to_source = chance(50);
      if (to_source)
        carry(true, abort_message{stale_key, {}, {}, false, {errc::aborted, "stale", "stale"}});
      else
        carry(false, drained_message{stale_key, {}, {}, true, {}});
    });
}

void chaos_world::after(duration d, std::function<void()> what) {
  queue_.push({now_ + d, happenings_++, std::move(what)});
}

duration chaos_world::delay(int from_ms, int to_ms) {
  return std::chrono::microseconds(from_ms * 1000 +
                                   static_cast<int>(random_() % ((to_ms - from_ms) * 1000 + 1)));
}

void chaos_world::violate(std::string text) {
  violations_.push_back(
      fmt::format("{:.3f} s: {}", std::chrono::duration<double>(now_ - at(0s)).count(), text));
}

void chaos_world::run() {
  // Every bound of the table after one another, fences asked for again included, is less.
  const auto end = at(15min);
  while (!queue_.empty() && violations_.empty()) {
    auto next = queue_.top();
    queue_.pop();
    if (next.when > end) return violate("still busy after 15 minutes");
    now_ = next.when;
    next.what();
  }
}

// -- the channel -----------------------------------------------------------------------------------

void chaos_world::carry(bool to_source, room_message message) {
  count("frame");
  if (session_lost_ || source_closed_ || sink_closed_) return;
  if (chance(weather_.lose)) {
    count("frame lost");
    ++frames_lost_;
    return;
  }
  int copies = 1;
  if (chance(weather_.duplicate)) {
    count("frame duplicated");
    copies = 2;
  }
  for (; copies > 0; --copies) {
    auto when = now_ + delay(1, 20);
    auto& clear = channel_clear_[to_source];
    if (chance(weather_.reorder)) {
      count("frame out of order");
      ++reordered_;
      when += delay(0, 100);
    } else {
      when = clear = std::max(when, clear);
    }
    after(when - now_, [this, to_source, message] {
      if (session_lost_) return;
      to_source ? deliver_to_source(message) : deliver_to_sink(message);
    });
  }
}

void chaos_world::deliver_to_source(const room_message& message) {
  if (source_closed_) return;
  if (source_over_) return answer_for_tombstone(message);
  auto met = std::visit([](const auto& m) { return m.key; }, message);
  // Before an attempt is adopted, the older one's tombstone takes its frames.
  if (met == stale_key && (!source_ || source_->key().attempt.value == 0)) return;
  if (!source_) source_.emplace(met, rig_.source, now_);
  auto from = rig_.decode();
  if (const auto* m = std::get_if<announce_message>(&message))
    step_source("announce", [&](auto& s, auto& out) { s.announce(from, *m, now_, out); });
  if (const auto* m = std::get_if<publish_message>(&message))
    step_source("publish", [&](auto& s, auto& out) { s.publish(from, *m, now_, out); });
  if (const auto* m = std::get_if<room_result_message>(&message))
    step_source("result", [&](auto& s, auto& out) { s.result(from, *m, now_, out); });
  if (const auto* m = std::get_if<abort_message>(&message))
    step_source("peer_abort", [&](auto& s, auto& out) { s.peer_abort(from, *m, now_, out); });
}

// What the actor does for a room that has ended.
void chaos_world::answer_for_tombstone(const room_message& message) {
  auto met = std::visit([](const auto& m) { return m.key; }, message);
  if (met != key) return;
  bool asks =
      std::holds_alternative<announce_message>(message) || std::holds_alternative<publish_message>(message);
  if (asks && tombstone_) carry(false, abort_message{key, {}, {}, true, tombstone_});
  if ((asks && tombstone_) || std::holds_alternative<abort_message>(message))
    carry(false, drained_message{key, {}, {}, true, {}});
}

void chaos_world::deliver_to_sink(const room_message& message) {
  if (sink_closed_) return;
  auto from = rig_.prefill();
  if (const auto* m = std::get_if<progress_message>(&message))
    step_sink("progress", [&](auto& s, auto& out) { s.progress(from, *m, now_, out); });
  if (const auto* m = std::get_if<abort_message>(&message))
    step_sink("peer_abort", [&](auto& s, auto& out) { s.peer_abort(from, *m, now_, out); });
  if (const auto* m = std::get_if<drained_message>(&message))
    step_sink("drained", [&](auto& s, auto& out) { s.drained(from, *m, now_, out); });
  if (const auto* m = std::get_if<room_done_message>(&message)) {
    row_reading row = fail(errc::metadata_missing, "no row");
    auto landed = sink_rows_.find(m->slot);
    if (landed != sink_rows_.end() && landed->second.second == key) row = landed->second.first;
    step_sink("done", [&](auto& s, auto& out) { s.done(from, *m, row, now_, out); });
  }
}

// Both sides see it, each in its time; each then closes its endpoint.
void chaos_world::lose_session() {
  count("session lost");
  session_lost_ = true;
  error reason{errc::peer_gone, "the session broke", {}};
  after(delay(1, 50), [this, reason] {
    step_source("peer_lost", [&](auto& m, auto& out) { m.peer_lost(decode_peer, reason, now_, out); });
    after(delay(1, 20), [this] { close_source(); });
  });
  after(delay(1, 50), [this, reason] {
    step_sink("peer_lost", [&](auto& m, auto& out) { m.peer_lost(prefill_peer, reason, now_, out); });
    after(delay(1, 20), [this] { close_sink(); });
  });
  std::vector<transfer_id> ids;
  for (const auto& [id, w] : writes_) ids.push_back(id);
  for (auto id : ids)
    after(delay(1, 100), [this, id] {
      finish(id, {errc::transport_completion, "the session broke", {}}, !chance(weather_.write_stuck));
    });
}

// -- the transport ---------------------------------------------------------------------------------

void chaos_world::start(transport::transfer t) {
  count("transfer");
  auto id = t.id;
  if (source_closed_ || session_lost_) {
    after(0ms, [this, id, peer = t.peer] {
      step_source("transfer_done", [&](auto& m, auto& out) {
        m.transfer_done({id, peer, {errc::peer_gone, "not ready", {}}, true, 0, 0, 0, 0}, now_, out);
      });
    });
    return;
  }
  writes_[id] = {std::move(t), false};
  if (chance(weather_.write_stuck)) {
    count("transfer stuck");
    writes_[id].stuck = true;
    after(rig_.source.transfer_timeout, [this, id] { finish(id, {errc::timed_out, "stuck", {}}, false); });
    after(delay(0, 90'000), [this, id] {  // what is stuck may land at any later time
      auto w = writes_.find(id);
      if (w != writes_.end() && !source_closed_ && !sink_closed_) land(w->second);
    });
  } else if (chance(weather_.write_error)) {
    count("transfer failed");
    after(delay(1, 60), [this, id] { finish(id, {errc::transport_completion, "no luck", {}}, true); });
  } else {
    after(delay(1, 60), [this, id] {
      auto w = writes_.find(id);
      if (w == writes_.end()) return;
      if (sink_closed_ || source_closed_)
        return finish(id, {errc::transport_fenced, "the sink fenced", {}}, true);
      land(w->second);
      const auto& t = w->second.what;
      if (t.notify && !t.last_blocks.empty()) {
        auto from = t.last_blocks[0].local_offset / 64, to = t.last_blocks[0].remote_offset / 64;
        sink_rows_[{static_cast<std::uint32_t>(to)}] = source_rows_[{static_cast<std::uint32_t>(from)}];
      }
      if (t.notify) carry(false, *wire::decode_payload<room_done_message>(t.notify->payload));
      finish(id, {}, true);
    });
  }
}

// A stuck write stays in the provider when its deadline has passed.
void chaos_world::finish(transfer_id id, error result, bool drained) {
  auto w = writes_.find(id);
  if (w == writes_.end()) return;
  auto peer = w->second.what.peer;
  if (drained) writes_.erase(w);
  step_source("transfer_done", [&](auto& m, auto& out) {
    m.transfer_done({id, peer, std::move(result), drained, 0, 0, 0, 0}, now_, out);
  });
}

void chaos_world::land(const write& w) {
  if (sink_end_.released > 0) violate("a write landed in released pages");
  if (source_end_.released > 0) violate("a write was read from released pages");
  for (const auto& b : w.what.blocks)
    std::copy_n(source_memory_[b.local.value].begin() + static_cast<std::ptrdiff_t>(b.local_offset), b.bytes,
                sink_memory_[b.remote.value].begin() + static_cast<std::ptrdiff_t>(b.remote_offset));
}

void chaos_world::close_source() {
  source_closed_ = true;
  writes_.clear();
  step_source("peer_closed", [this](auto& m, auto& out) { m.peer_closed(decode_peer, now_, out); });
}

void chaos_world::close_sink() {
  sink_closed_ = true;
  step_sink("peer_closed", [this](auto& m, auto& out) { m.peer_closed(prefill_peer, now_, out); });
}

}  // namespace handoff::testing
