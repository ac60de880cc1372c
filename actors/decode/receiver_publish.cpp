// What a sink publishes, and how it proves that all of it has arrived.
#include "actors/decode/receiver_machine.hpp"
#include "actors/room/reasons.hpp"
#include "messages/limits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

// Cuts page lists into parts of at most so many runs; each part repeats its components' heads.
std::vector<std::vector<component_pages>> cut(const std::vector<component_pages>& pages) {
  std::vector<std::vector<component_pages>> parts(1);
  std::size_t room = limits::publish_runs_per_part;
  for (const auto& p : pages) {
    auto rest = p.runs.begin();
    do {
      if (room == 0) {
        parts.emplace_back();
        room = limits::publish_runs_per_part;
      }
      auto n = std::min<std::size_t>(room, static_cast<std::size_t>(p.runs.end() - rest));
      auto end = rest + static_cast<std::ptrdiff_t>(n);
      parts.back().push_back({p.component, p.first_token, p.prefix_tokens, {rest, end}});
      room -= n;
      rest = end;
    } while (rest != p.runs.end());
  }
  return parts;
}

std::string text(const std::vector<component_coverage>& coverage) {
  std::string out;
  for (const auto& c : coverage)
    out += fmt::format("{}component {} tokens [{}, {}) {} bytes", out.empty() ? "" : ", ", c.component.value,
                       c.first_token, c.last_token, c.bytes);
  return out.empty() ? "nothing" : out;
}

}  // namespace

error receiver_machine::publish(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot,
                                time_point now, room_effects& out) {
  note("publish");
  auto bad = [&](errc code, std::string detail) {
    return error{code, fmt::format("{}: {}", to_string(key_), detail), {}};
  };
  if (state() != receiver_state::announced)
    return bad(errc::room_state, fmt::format("pages were published in state {}", to_string(state())));
  if (auto e = layout::check_pages(*context_->layout, pages, tokens)) return bad(e.code, e.detail);
  auto owed = layout::plan_totals(*peer_->layout, *context_->layout, pages, tokens);
  if (!owed) return bad(owed.error().code, owed.error().detail);
  auto parts = cut(pages);
  if (parts.size() > limits::publish_parts)
    return bad(errc::limit_exceeded,
               fmt::format("its pages need {} messages of {} runs, the limit is {}", parts.size(),
                           limits::publish_runs_per_part, limits::publish_parts));
  slot_ = slot;
  tokens_ = tokens;
  owed_ = std::move(*owed);
  emit<lease_effect>(out, {lease_state::exposed});
  auto count = static_cast<std::uint16_t>(parts.size());
  for (std::uint16_t i = 0; i < count; ++i)
    emit_frame(
        out, peer_->peer,
        publish_message{key_, peer_->identity.rank, context_->rank, i, count, slot, std::move(parts[i])});
  move(receiver_state::published, now);
  emit<verdict_effect>(out, {kv_poll::transferring, {}, {}});
  return {};
}

void receiver_machine::done(const peer_view& from, const room_done_message& message, const row_reading& row,
                            time_point now, room_effects& out) {
  note("done");
  if (!from_peer(from, message.key)) return;
  switch (state()) {
    case receiver_state::resolving:
      return;
    case receiver_state::announced:
      return fail(
          {errc::wire_malformed,
           fmt::format("{}: {} reported room_done before it knew a page", to_string(key_), name_of(from)),
           {}},
          true, now, out);
    case receiver_state::published:
      if (auto e = prove(message, row)) {
        fail(std::move(e), false, now, out);
        break;
      }
      for (const auto& c : owed_.coverage)
        if (c.component.value < proven_.size()) proven_[c.component.value] = c.last_token - c.first_token;
      move(receiver_state::succeeded, now);
      emit<verdict_effect>(out, {kv_poll::success, {}, proven_});
      break;
    case receiver_state::succeeded:
    case receiver_state::failed:
      break;
  }
  // Whoever says room_done has flushed all its writes.
  release(out);
  send_result(out);
}

void receiver_machine::progress(const peer_view& from, const progress_message& message, time_point now,
                                room_effects& out) {
  note("progress");
  if (!from_peer(from, message.key) || state() != receiver_state::published) return;
  for (const auto& p : message.delivered) {
    auto owed = std::find_if(owed_.coverage.begin(), owed_.coverage.end(),
                             [&](const auto& c) { return c.component == p.component; });
    if (owed == owed_.coverage.end() || p.last_token < owed->first_token || p.last_token > owed->last_token)
      return fail(
          {errc::wire_malformed,
           fmt::format("{}: {} reported tokens below {} of component {} as delivered, of {}", to_string(key_),
                       name_of(from), p.last_token, p.component.value, text(owed_.coverage)),
           {}},
          true, now, out);
    if (p.component.value >= proven_.size()) continue;
    auto& proven = proven_[p.component.value];
    proven = std::max(proven, p.last_token - owed->first_token);
  }
}

// Success is proven: our own plan against what the source says it wrote, then the row's stamp.
error receiver_machine::prove(const room_done_message& m, const row_reading& row) const {
  error found;
  auto same = [&](errc code, const char* what, auto theirs, auto ours) {
    if (!found && theirs != ours)
      found = {code,
               fmt::format("{}: {}: {} wrote {}, this side planned {}", to_string(key_), what,
                           name_of(*peer_), theirs, ours),
               {}};
  };
  same(errc::plan_mismatch, "metadata slot", m.slot.value, slot_->value);
  same(errc::plan_mismatch, "tokens", m.tokens, tokens_);
  if (m.coverage != owed_.coverage)
    same(errc::coverage_gap, "coverage", text(m.coverage), text(owed_.coverage));
  same(errc::coverage_gap, "bytes", m.bytes, owed_.bytes);
  same(errc::plan_mismatch, "plan hash", m.plan_hash, owed_.digest);
  if (!found && !row) found = row.error();
  return found;
}

}  // namespace handoff
