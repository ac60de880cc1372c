// What a source's engine sends, and how it goes out: chunks in any number, then for each sink rank, after all
// its chunks were delivered, the metadata row and `room_done`.
#include "actors/prefill/sender_machine.hpp"
#include "actors/room/reasons.hpp"
#include "messages/wire.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {

error sender_machine::send(layout::range what, bool last, std::optional<metadata_row> row, time_point now,
                           room_effects& out) {
  note("send");
  if (auto e = check_chunk(what, last, row.has_value())) return e;
  if (auto e = last ? check_last(what) : error{}) return e;
  bool posts = state() == sender_state::ready || state() == sender_state::sending;
  std::vector<layout::chunk_plan> plans;
  for (std::size_t i = 0; posts && i < sinks_.size(); ++i) {
    auto plan =
        layout::plan_chunk(*context_->layout, *sinks_[i].view.layout, pages_, sinks_[i].pages, tokens_, what);
    if (!plan) return plan.error();
    plans.push_back(std::move(*plan));
  }
  sent_.add(what);
  chunks_ += 1;
  if (last) row_ = row;
  if (!posts) {
    queued_.push_back(what);
    return {};
  }
  begin_sending(now, out);
  auto plan = plans.begin();
  for (auto& s : sinks_) post(s, what, std::move(*plan++), last, out);
  check_done(now, out);
  return {};
}

error sender_machine::check_chunk(const layout::range& what, bool last, bool row) const {
  auto bad = [&](errc code, std::string detail) {
    return error{code, fmt::format("{}: {}", to_string(key_), detail), {}};
  };
  if (state() != sender_state::offered && state() != sender_state::ready && state() != sender_state::sending)
    return bad(errc::room_state, fmt::format("a chunk in state {}", to_string(state())));
  if (row_) return bad(errc::room_state, "a chunk after the last one");
  if (last != row)
    return bad(errc::invalid_argument, last ? "the last chunk needs the metadata row"
                                            : "the metadata row comes with the last chunk only");
  if (auto e = layout::check_range(*context_->layout, what, tokens_)) return bad(e.code, e.detail);
  if (sent_.overlaps(what))
    return bad(errc::invalid_argument, fmt::format("tokens [{}, {}) overlap what was sent before",
                                                   what.first_token, what.last_token));
  if (chunks_ >= context_->chunks_max)
    return bad(errc::limit_exceeded, fmt::format("{} chunks were sent already", chunks_));
  return {};
}

// With this chunk everything that any sink is owed has been sent.
error sender_machine::check_last(const layout::range& what) const {
  for (const auto& own : pages_) {
    auto from = std::min(own.first_token, tokens_);
    if (state() != sender_state::offered) {
      from = tokens_;
      for (const auto& s : sinks_)
        for (const auto& p : s.pages)
          if (p.component == own.component) from = std::min(from, layout::owed_from(p, tokens_));
    }
    auto e = sent_.missing(own.component, from, tokens_, what);
    if (e) return {e.code, fmt::format("{}: {}", to_string(key_), e.detail), {}};
  }
  return {};
}

void sender_machine::begin_sending(time_point now, room_effects& out) {
  if (state() != sender_state::ready) return;
  move(sender_state::sending, now);
  emit<verdict_effect>(out, {kv_poll::transferring, {}, {}});
}

// Destinations are known now. The engine's chunks were checked against its own pages when they came.
void sender_machine::post_queued(time_point now, room_effects& out) {
  if (queued_.empty()) return;
  begin_sending(now, out);
  auto chunks = std::exchange(queued_, {});
  for (std::size_t i = 0; i < chunks.size(); ++i)
    for (auto& s : sinks_) {
      auto plan = layout::plan_chunk(*context_->layout, *s.view.layout, pages_, s.pages, tokens_, chunks[i]);
      if (!plan) {
        plan.error().detail =
            fmt::format("{} for {}: {}", to_string(key_), name_of(s.view), plan.error().detail);
        return fail(std::move(plan.error()), nullptr, now, out);
      }
      post(s, chunks[i], std::move(*plan), row_ && i + 1 == chunks.size(), out);
    }
  check_done(now, out);
}

// `final`: no chunk follows. The row waits for chunks that are still in flight.
void sender_machine::post(sink& s, const layout::range& what, layout::chunk_plan plan, bool final,
                          room_effects& out) {
  layout::add(s.sent, plan.sum);
  if (final && s.in_flight.empty()) return submit(s, what, std::move(plan.blocks), true, out);
  if (plan.blocks.empty())
    s.delivered.add(what);  // the sink has all of it
  else
    submit(s, what, std::move(plan.blocks), false, out);
}

// What has arrived in every layer, should the room fail before `room_done` says it.
void sender_machine::tell_progress(sink& s, room_effects& out) {
  progress_message m{key_, context_->rank, s.rank, {}};
  std::uint64_t sum = 0;
  for (const auto& p : s.pages) {
    auto from = layout::owed_from(p, tokens_);
    auto reached = s.delivered.reached(p.component, from);
    if (reached <= from) continue;
    m.delivered.push_back({p.component, reached});
    sum += reached - from;
  }
  if (sum <= s.told) return;
  s.told = sum;
  emit_frame(out, s.view.peer, std::move(m));
}

void sender_machine::submit(sink& s, const layout::range& what, std::vector<transport::block> blocks,
                            bool final, room_effects& out) {
  transport::transfer t;
  t.id = transfer_id{(*context_->next_transfer)++};
  t.peer = s.view.peer;
  t.blocks = std::move(blocks);
  t.timeout = context_->transfer_timeout;
  if (final) {
    if (!row_written_) emit<write_row_effect>(out, {slot_, *row_, key_});
    row_written_ = true;
    constexpr std::uint64_t bytes = row_schema::row_bytes;
    t.last_blocks.push_back({context_->metadata_region, slot_.value * bytes, s.view.metadata_region,
                             s.slot.value * bytes, bytes});
    room_done_message done{key_,    context_->rank, s.rank,        s.slot,
                           tokens_, s.sent.bytes,   s.sent.digest, s.sent.coverage};
    t.notify.emplace();
    t.notify->type = message_type::room_done;
    wire::encode_payload(done, t.notify->payload);
    s.final_submitted = true;
  }
  s.in_flight.emplace(t.id, what);
  if (!exposed_) emit<lease_effect>(out, {lease_state::exposed});
  exposed_ = true;
  emit<submit_effect>(out, {std::move(t)});
}

}  // namespace handoff
