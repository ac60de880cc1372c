// The two processes of the chaos world: engines and the simplest actors around the machines.
#include "tests/actors/machines/chaos_world.hpp"

#include <algorithm>

namespace handoff::testing {
namespace {

constexpr std::uint32_t source_first = 2, sink_first = 11;
constexpr std::uint64_t page_bytes = 64, token_bytes = 16;

}  // namespace

// -- the source's process --------------------------------------------------------------------------

void chaos_world::offer() {
  source_end_.known = true;
  if (source_over_) {  // ended before: the tombstone's reason is the verdict, no page was leased
    source_end_.verdict = kv_poll::failed;
    source_end_.reason = tombstone_;
    source_end_.released = 1;
    return;
  }
  if (!source_) source_.emplace(room_key{{7}, {0}}, rig_.source, now_);
  source_key_ = source_->key();
  source_lease_ = source_leases_.reserve(source_key_, rig::pages(source_first)).value();
  source_slot_ = source_slots_.take(source_key_).value();
  step_source("offer", [this](auto& m, auto& out) {
    m.offer(rig::pages(source_first), tokens, *source_slot_, 0s, "request-1", now_, out);
  });
  after(delay(0, 600), [this] { send_next(); });
}

void chaos_world::send_next() {
  if (!source_ || next_chunk_ == chunks_.size() || chance(weather_.absent / 4)) return;
  auto what = chunks_[next_chunk_++];
  bool last = next_chunk_ == chunks_.size();
  step_source("send", [&](auto& m, auto& out) {
    auto e = m.send(what, last, last ? std::optional(rig::row()) : std::nullopt, now_, out);
    if (e && e.code != errc::room_state) violate("a good chunk was refused: " + to_string(e));
  });
  if (!last) after(delay(0, 60), [this] { send_next(); });
}

void chaos_world::abort_source(error reason) {
  if (source_over_) return;
  if (!source_) {  // remembered before its room
    source_over_ = true;
    tombstone_ = reason;
    tombstone_.origin = rig_.source.origin;
    return;
  }
  step_source("abort", [&](auto& m, auto& out) { m.abort(reason, now_, out); });
}

void chaos_world::step_source(const char* event,
                              const std::function<void(sender_machine&, room_effects&)>& step) {
  if (!source_) return;
  ++(*counts_)[fmt::format("source {} in {}", event, to_string(source_->state()))];
  room_effects effects;
  step(*source_, effects);
  if (source_->key() != source_key_ && source_lease_) {
    if (source_leases_.rekey(*source_lease_, source_->key()) ||
        source_slots_.rekey(*source_slot_, source_key_, source_->key()))
      violate("rekey was refused");
    source_key_ = source_->key();
  }
  apply_source(effects);
  if (source_->finished()) {
    source_over_ = true;
    tombstone_ = source_->reason();
    source_.reset();
    return;
  }
  arm_source();
}

void chaos_world::arm_source() {
  auto when = source_->deadline();
  if (when == time_point::max()) return violate("the source waits without a bound");
  if (source_->waits().who.empty()) violate("the source waits for nobody");
  if (when >= source_armed_ && source_armed_ > now_) return;
  source_armed_ = when;
  after(std::max<duration>(when - now_, 0ns), [this, when] {
    if (source_armed_ == when) source_armed_ = time_point::max();
    step_source("tick", [this](auto& m, auto& out) { m.tick(now_, out); });
  });
}

void chaos_world::apply_source(room_effects& effects) {
  for (auto& effect : effects) {
    if (auto* e = std::get_if<send_effect>(&effect)) carry(false, e->message);
    if (auto* e = std::get_if<write_row_effect>(&effect)) source_rows_[e->slot] = {e->row, e->stamp};
    if (auto* e = std::get_if<submit_effect>(&effect)) {
      if (source_leases_.counts().exposed == 0) violate("a write without an exposed lease");
      start(std::move(e->what));
    }
    if (auto* e = std::get_if<verdict_effect>(&effect)) verdict(source_end_, *e, "source");
    if (auto* e = std::get_if<lease_effect>(&effect))
      lease(source_leases_, source_lease_, source_end_, e->state, "source");
    if (std::get_if<lease_effect>(&effect) && source_end_.released > 0 && !writes_.empty())
      violate("the source's pages were released while a write of theirs was in flight");
    if (std::get_if<fence_effect>(&effect)) {
      count("fence by the source");
      after(delay(1, 5), [this] { close_source(); });
    }
    if (auto* e = std::get_if<free_slot_effect>(&effect))
      if (source_slots_.give_back(e->slot, source_key_)) violate("the source's slot was freed twice");
  }
}

// -- the sink's process ----------------------------------------------------------------------------

void chaos_world::publish() {
  if (!sink_ || sink_->state() != receiver_state::announced) return;
  sink_lease_ = sink_leases_.reserve(sink_->key(), rig::pages(sink_first)).value();
  sink_slot_ = sink_slots_.take(sink_->key()).value();
  step_sink("publish", [this](auto& m, auto& out) {
    if (auto e = m.publish(rig::pages(sink_first, prefix_), tokens, *sink_slot_, now_, out))
      violate("good pages were refused: " + to_string(e));
  });
}

void chaos_world::step_sink(const char* event,
                            const std::function<void(receiver_machine&, room_effects&)>& step) {
  if (!sink_) return;
  ++(*counts_)[fmt::format("sink {} in {}", event, to_string(sink_->state()))];
  room_effects effects;
  step(*sink_, effects);
  apply_sink(effects);
  // Kept when it has ended: its tombstone answers as the machine does.
  if (!sink_->finished()) arm_sink();
}

void chaos_world::arm_sink() {
  auto when = sink_->deadline();
  if (when == time_point::max()) return violate("the sink waits without a bound");
  if (sink_->waits().who.empty()) violate("the sink waits for nobody");
  if (when >= sink_armed_ && sink_armed_ > now_) return;
  sink_armed_ = when;
  after(std::max<duration>(when - now_, 0ns), [this, when] {
    if (sink_armed_ == when) sink_armed_ = time_point::max();
    step_sink("tick", [this](auto& m, auto& out) { m.tick(now_, out); });
  });
}

void chaos_world::apply_sink(room_effects& effects) {
  for (auto& effect : effects) {
    if (auto* e = std::get_if<send_effect>(&effect)) {
      if (std::holds_alternative<publish_message>(e->message) && sink_leases_.counts().exposed == 0)
        violate("pages were published before their lease was exposed");
      carry(true, e->message);
    }
    if (auto* e = std::get_if<verdict_effect>(&effect)) {
      verdict(sink_end_, *e, "sink");
      if (e->poll == kv_poll::waiting_for_input && !chance(weather_.absent))
        after(delay(0, 300), [this] { publish(); });
      if (e->poll == kv_poll::success) check_memory(tokens, "success");
      if (e->poll == kv_poll::failed && e->proven_tokens[0] > 0) {
        count("tokens proven in a failed room");
        check_memory(prefix_ + e->proven_tokens[0], "proven tokens");
      }
      if (e->poll == kv_poll::success && (!sink_slot_ || !sink_rows_.count(*sink_slot_)))
        violate("success without a row");
    }
    if (auto* e = std::get_if<lease_effect>(&effect))
      lease(sink_leases_, sink_lease_, sink_end_, e->state, "sink");
    if (std::get_if<lease_effect>(&effect) && sink_end_.released > 0 && !writes_.empty() && !sink_closed_)
      violate("the sink's pages were released while a writer was neither drained nor fenced");
    if (std::get_if<fence_effect>(&effect)) {
      count("fence by the sink");
      after(delay(1, 5), [this] { close_sink(); });
    }
    if (auto* e = std::get_if<free_slot_effect>(&effect))
      if (sink_slots_.give_back(e->slot, sink_->key())) violate("the sink's slot was freed twice");
  }
}

// -- what must hold --------------------------------------------------------------------------------

void chaos_world::verdict(side_end& end, const verdict_effect& e, const char* side) {
  if (end.verdict && is_terminal(*end.verdict))
    violate(fmt::format("the {} changed a terminal verdict", side));
  if (end.verdict && e.poll != kv_poll::failed && e.poll <= *end.verdict)
    violate(fmt::format("the {} went back to {}", side, to_string(e.poll)));
  if (end.released > 0) violate(fmt::format("the {} spoke after released", side));
  if ((e.poll == kv_poll::failed) != bool(e.reason))
    violate(fmt::format("the {} said {} with reason {}", side, to_string(e.poll), to_string(e.reason)));
  end.verdict = e.poll;
  end.reason = e.reason;
}

void chaos_world::lease(lease_table& table, std::optional<lease_id>& id, side_end& end, lease_state to,
                        const char* side) {
  if (to == lease_state::released) {
    if (++end.released > 1) violate(fmt::format("the {} released twice", side));
    if (!end.verdict || !is_terminal(*end.verdict)) violate(fmt::format("the {} released too early", side));
  }
  if (!id) {
    if (to != lease_state::released)
      violate(fmt::format("the {} has no lease to be {}", side, to_string(to)));
    return;
  }
  if (auto e = table.set_state(*id, to)) violate(to_string(e));
  if (to == lease_state::released) id.reset();
}

void chaos_world::check_memory(std::uint64_t last_token, const char* claim) {
  std::uint64_t wrong = 0;
  for (std::size_t region = 0; region < 4; ++region)
    for (auto token = prefix_; token < last_token; ++token)
      for (std::uint64_t byte = 0; byte < token_bytes; ++byte) {
        auto inside = token / 4 * page_bytes + token % 4 * token_bytes + byte;
        wrong += sink_memory_[region][sink_first * page_bytes + inside] !=
                 source_memory_[region][source_first * page_bytes + inside];
      }
  if (wrong != 0) violate(fmt::format("{} with {} wrong bytes", claim, wrong));
}

void chaos_world::check_end() {
  if (source_) violate(fmt::format("the source is still {}", to_string(source_->state())));
  if (sink_ && !sink_->finished()) violate(fmt::format("the sink is still {}", to_string(sink_->state())));
  for (const auto* end : {&source_end_, &sink_end_}) {
    const char* side = end == &source_end_ ? "source" : "sink";
    if (!end->known) continue;
    if (!end->verdict || !is_terminal(*end->verdict)) violate(fmt::format("the {} has no end", side));
    if (end->released != 1) violate(fmt::format("the {} was released {} times", side, end->released));
  }
  // The slot of a success is its engine's.
  bool kept = sink_end_.verdict == kv_poll::success;
  if (source_slots_.used() != 0 || sink_slots_.used() != (kept ? 1u : 0u)) violate("slots leak");
  if (source_leases_.counts() != lease_counts{} || sink_leases_.counts() != lease_counts{})
    violate("leases leak");
}

}  // namespace handoff::testing
