// What a room's sinks say to its source.
#include "actors/prefill/sender_machine.hpp"
#include "actors/room/reasons.hpp"
#include "messages/limits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {

sender_machine::sink* sender_machine::find(peer_id peer) {
  auto s = std::find_if(sinks_.begin(), sinks_.end(), [&](const auto& x) { return x.view.peer == peer; });
  return s == sinks_.end() ? nullptr : &*s;
}

// Is the message of this room's attempt? The first attempt that is met is adopted, an older one is ignored, a
// newer one ends this one; its own message waits with the caller until this machine is finished.
bool sender_machine::accept(const peer_view& from, room_key key, time_point now, room_effects& out) {
  if (key.room != key_.room || key.attempt.value == 0) return false;
  if (key_.attempt.value == 0) key_.attempt = key.attempt;
  if (key.attempt == key_.attempt) return true;
  if (key.attempt < key_.attempt) return false;
  fail({errc::room_superseded,
        fmt::format("{} was superseded by attempt {} of {}", to_string(key_), key.attempt.value,
                    name_of(from)),
        context_->origin},
       nullptr, now, out);
  return false;
}

// The sink that says it; a new one while the room still gathers them, else none and it is refused.
sender_machine::sink* sender_machine::meet(const peer_view& from, room_key key, rank_coord rank,
                                           room_effects& out) {
  if (auto* s = find(from.peer)) return s;
  std::size_t bound = sinks_expected_ != 0 ? sinks_expected_ : limits::publish_parts;
  if (!gathering() || sinks_.size() >= bound) {
    refuse(from, key, rank,
           {errc::room_state,
            fmt::format("{}: {} is not one of the room's {} sink ranks", to_string(key_), name_of(from),
                        sinks_.size()),
            context_->origin},
           out);
    return nullptr;
  }
  auto& s = sinks_.emplace_back(*context_->layout);
  s.view = from;
  s.rank = rank;
  return &s;
}

// Nothing was ever written for this one.
void sender_machine::refuse(const peer_view& from, room_key key, rank_coord rank, const error& reason,
                            room_effects& out) {
  emit_frame(out, from.peer, abort_message{key, context_->rank, rank, true, reason});
  emit_frame(out, from.peer, drained_message{key, context_->rank, rank, true, reason});
}

void sender_machine::announce(const peer_view& from, const announce_message& m, time_point now,
                              room_effects& out) {
  note("announce");
  if (!accept(from, m.key, now, out)) return;
  if (terminal()) return answer_ended(from, m.sink, true, now, out);
  auto* s = meet(from, m.key, m.sink, out);
  if (!s) return;
  if (s->announced) return renew(now);
  if (m.sink_ranks == 0 || (sinks_expected_ != 0 && sinks_expected_ != m.sink_ranks) ||
      sinks_.size() > m.sink_ranks)
    return fail({errc::wire_malformed,
                 fmt::format("{}: {} says that {} sink ranks publish, {} were announced or met before",
                             to_string(key_), name_of(from), m.sink_ranks,
                             std::max<std::size_t>(sinks_expected_, sinks_.size())),
                 {}},
                nullptr, now, out);
  s->announced = true;
  sinks_expected_ = m.sink_ranks;
  if (label_.empty()) label_ = m.label;
  renew(now);
  check_ready(now, out);
}

void sender_machine::publish(const peer_view& from, const publish_message& m, time_point now,
                             room_effects& out) {
  note("publish");
  if (!accept(from, m.key, now, out)) return;
  if (terminal()) return answer_ended(from, m.sink, true, now, out);
  auto* s = meet(from, m.key, m.sink, out);
  if (!s || s->published) return;
  if (auto e = collect(*s, m)) return fail(std::move(e), nullptr, now, out);
  check_ready(now, out);
}

// One part; the pages count when every part is here, in the order of their numbers.
error sender_machine::collect(sink& s, const publish_message& m) {
  auto bad = [&](std::string detail) {
    return error{errc::wire_malformed,
                 fmt::format("{}: publish of {}: {}", to_string(key_), name_of(s.view), detail),
                 {}};
  };
  if (m.parts == 0 || m.parts > limits::publish_parts || m.part >= m.parts)
    return bad(fmt::format("part {} of {}, at most {} are taken", m.part, m.parts, limits::publish_parts));
  if (s.parts.empty()) {
    s.parts.resize(m.parts);
    s.slot = m.slot;
  }
  if (s.parts.size() != m.parts || s.slot != m.slot)
    return bad(fmt::format("part {} says {} parts and slot {}, the first said {} and {}", m.part, m.parts,
                           m.slot.value, s.parts.size(), s.slot.value));
  if (s.parts[m.part]) return {};
  s.parts[m.part] = m.pages;
  if (!std::all_of(s.parts.begin(), s.parts.end(), [](const auto& p) { return p.has_value(); })) return {};

  for (auto& part : s.parts)
    for (auto& piece : *part) {
      auto same = std::find_if(s.pages.begin(), s.pages.end(),
                               [&](const auto& p) { return p.component == piece.component; });
      if (same == s.pages.end()) {
        s.pages.push_back(std::move(piece));
        continue;
      }
      if (same->first_token != piece.first_token || same->prefix_tokens != piece.prefix_tokens)
        return bad(
            fmt::format("its parts differ in first token or prefix of component {}", piece.component.value));
      same->runs.insert(same->runs.end(), piece.runs.begin(), piece.runs.end());
    }
  s.parts.assign(s.parts.size(), std::vector<component_pages>{});
  s.published = true;
  return {};
}

void sender_machine::result(const peer_view& from, const room_result_message& m, time_point now,
                            room_effects& out) {
  note("result");
  auto* s = find(from.peer);
  if (!s || terminal() || m.key != key_) return;
  if (m.verdict == kv_poll::failed) return fail(m.reason, s, now, out);
  if (m.verdict != kv_poll::success || !s->final_submitted)
    return fail({errc::wire_malformed,
                 fmt::format("{}: {} reported {} before room_done was sent", to_string(key_), name_of(from),
                             to_string(m.verdict)),
                 {}},
                nullptr, now, out);
  s->confirmed = true;
  check_done(now, out);
}

void sender_machine::peer_abort(const peer_view& from, const abort_message& m, time_point now,
                                room_effects& out) {
  note("peer_abort");
  if (!accept(from, m.key, now, out)) return;
  if (terminal()) return answer_ended(from, m.sink, false, now, out);
  auto* s = find(from.peer);
  if (!s && !gathering())  // nothing was ever written for this one
    return emit_frame(out, from.peer, drained_message{m.key, context_->rank, m.sink, true, m.reason});
  if (!s && !(s = meet(from, m.key, m.sink, out))) return;
  s->owes_drained = true;
  fail(m.reason, s, now, out);
}

// The room has ended: a sink that may not know is told the reason, and hears `drained` once no write of ours
// can reach it. A peer that was no part of the room hears it after everyone's writes.
void sender_machine::answer_ended(const peer_view& from, rank_coord rank, bool tell, time_point now,
                                  room_effects& out) {
  if (state() == sender_state::succeeded && tell) return;
  auto* s = find(from.peer);
  if (!s) {
    s = &sinks_.emplace_back(*context_->layout);
    s->view = from;
    s->rank = rank;
    s->stranger = true;
  }
  if (s->lost) return;
  if (tell) emit_frame(out, from.peer, abort_message{key_, context_->rank, rank, true, reason_});
  s->owes_drained = true;
  settle(now, out);
}

void sender_machine::peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out) {
  note("peer_lost");
  auto* s = find(peer);
  if (!s) return;
  s->lost = true;
  // Past `room_done` the sink may have succeeded, whatever we gave up for: only its loss is certain.
  if (!s->confirmed) fail(s->final_submitted ? reason : first_reason(reason), s, now, out);
  settle(now, out);
}

void sender_machine::peer_closed(peer_id peer, time_point now, room_effects& out) {
  note("peer_closed");
  auto* s = find(peer);
  if (!s) return;
  s->in_flight.clear();
  peer_lost(peer, {errc::peer_gone, fmt::format("{} was closed here", name_of(s->view)), {}}, now, out);
  check_done(now, out);
}

}  // namespace handoff
