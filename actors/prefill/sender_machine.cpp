// The room's life: events of the engine, of the transport and of the clock.
#include "actors/prefill/sender_machine.hpp"

#include "actors/room/reasons.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {

std::string_view to_string(sender_state state) {
  static constexpr std::string_view names[sender_state_count] = {
      "unclaimed", "offered", "ready", "sending", "confirming", "succeeded", "failed"};
  return names[static_cast<std::size_t>(state)];
}

sender_machine::sender_machine(room_key key, const sender_context& context, time_point now)
    : key_(key), context_(&context), clock_(now), sent_(*context.layout) {
  if (context_->log) context_->log(key_, "", to_string(state()), now);
}

void sender_machine::move(sender_state to, time_point now) {
  clock_.move(to, key_, context_->log, now);
}

kv_poll sender_machine::poll() const {
  switch (state()) {
    case sender_state::unclaimed:
    case sender_state::offered:
      return kv_poll::bootstrapping;
    case sender_state::ready:
      return kv_poll::waiting_for_input;
    case sender_state::sending:
    case sender_state::confirming:
      return kv_poll::transferring;
    case sender_state::succeeded:
      return kv_poll::success;
    case sender_state::failed:
      return kv_poll::failed;
  }
  return kv_poll::failed;
}

void sender_machine::offer(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot,
                           duration lease, std::string label, time_point now, room_effects& out) {
  note("offer");
  if (claimed_) return;
  claimed_ = true;
  pages_ = std::move(pages);
  tokens_ = tokens;
  slot_ = slot;
  if (!label.empty()) label_ = std::move(label);
  if (terminal()) {  // ended by its sinks before the engine came
    emit<verdict_effect>(out, {poll(), reason_, {}});
    emit<lease_effect>(out, {lease_state::released});
    emit<free_slot_effect>(out, {slot_});
    return;
  }
  lease_ = lease > duration{} ? lease : context_->bootstrap_timeout;
  bootstrap_deadline_ = now + lease_;
  if (announced_at_) renew(now);
  move(sender_state::offered, now);
  if (auto e = layout::check_pages(*context_->layout, pages_, tokens_)) {
    e.detail = "the offered pages: " + e.detail;
    return fail(std::move(e), nullptr, now, out);
  }
  check_ready(now, out);
}

void sender_machine::abort(error reason, time_point now, room_effects& out) {
  note("abort");
  give_up(std::move(reason), now, out);
}

// Both sides must end alike. A sink that `room_done` is on its way to may succeed by it, so the sink decides:
// it hears of our abort after `room_done`, and answers with what it made of the room.
void sender_machine::give_up(error reason, time_point now, room_effects& out) {
  if (terminal() || giving_up_) return;
  auto decides = [](const sink& s) { return s.final_submitted && !s.confirmed && !s.lost; };
  if (std::none_of(sinks_.begin(), sinks_.end(), decides)) return fail(std::move(reason), nullptr, now, out);
  giving_up_ = settled_reason(std::move(reason), context_->origin);
  give_up_deadline_ = now + context_->result_timeout;
  for (const auto& s : sinks_)
    if (!s.lost) emit_frame(out, s.view.peer, abort_message{key_, context_->rank, s.rank, true, giving_up_});
}

// An announced sink is still there. A short lease lasts until two of its announces were lost.
void sender_machine::renew(time_point now) {
  if (!announced_at_) announced_at_ = now;
  auto until = now + std::max(lease_, 3 * context_->announce_interval);
  auto last = std::max(*announced_at_ + context_->renewed_max, bootstrap_deadline_);
  bootstrap_deadline_ = std::max(bootstrap_deadline_, std::min(until, last));
}

// All sink ranks have published and their pages are good: the room may send.
void sender_machine::check_ready(time_point now, room_effects& out) {
  if (state() != sender_state::offered) return;
  std::size_t published = 0;
  for (auto& s : sinks_) {
    if (!s.published) continue;
    ++published;
    if (s.checked) continue;
    s.checked = true;
    auto e = layout::judge_pair(*context_->layout, *s.view.layout);
    if (!e) e = layout::check_pages(*s.view.layout, s.pages, tokens_);
    if (e) {
      e.detail = fmt::format("{}, pages published by {}: {}", to_string(key_), name_of(s.view), e.detail);
      return fail(std::move(e), nullptr, now, out);
    }
  }
  if (sinks_expected_ == 0 || published < sinks_expected_) return;
  move(sender_state::ready, now);
  emit<verdict_effect>(out, {kv_poll::waiting_for_input, {}, {}});
  post_queued(now, out);
}

void sender_machine::transfer_done(const transport::transfer_done& done, time_point now, room_effects& out) {
  note("transfer_done");
  auto* s = find(done.peer);
  auto written = s ? s->in_flight.find(done.id) : decltype(s->in_flight.find(done.id)){};
  if (!s || written == s->in_flight.end()) return;
  auto what = written->second;
  if (done.drained) s->in_flight.erase(written);
  // What a sink has confirmed has arrived, whatever became of the acknowledgement.
  if (done.result && !s->confirmed && !terminal()) {
    auto reason = done.result;
    reason.detail = fmt::format("{}: writing to {}: {}", to_string(key_), name_of(s->view), reason.detail);
    // An acknowledgement that fails says nothing about arrival: past `room_done` the sink knows.
    return give_up(std::move(reason), now, out);
  }
  if (!done.result && !terminal() && !s->final_submitted) {
    s->delivered.add(what);
    tell_progress(*s, out);
  }
  // Not once the room is given up: a chunk of this sink may have been lost.
  if (state() == sender_state::sending && row_ && !giving_up_ && !s->final_submitted && s->in_flight.empty())
    submit(*s, {}, {}, true, out);
  check_done(now, out);
  settle(now, out);
}

// Everything out, or everything confirmed?
void sender_machine::check_done(time_point now, room_effects& out) {
  if (state() != sender_state::sending && state() != sender_state::confirming) return;
  auto all = [&](auto what) { return std::all_of(sinks_.begin(), sinks_.end(), what); };
  if (all([](const sink& s) { return s.confirmed; })) {
    move(sender_state::succeeded, now);
    emit<verdict_effect>(out, {kv_poll::success, {}, {}});
    return settle(now, out);
  }
  if (state() == sender_state::sending &&
      all([](const sink& s) { return s.final_submitted && s.in_flight.empty(); }))
    move(sender_state::confirming, now);
}

// The one way into failed: first reason, verdict, the sinks, then what still drains. `told` knows already.
void sender_machine::fail(error reason, const sink* told, time_point now, room_effects& out) {
  if (terminal()) return;
  reason_ = settled_reason(std::move(reason), context_->origin);
  move(sender_state::failed, now);
  queued_.clear();
  if (claimed_) emit<verdict_effect>(out, {kv_poll::failed, reason_, {}});
  for (auto& s : sinks_) {
    if (s.lost || &s == told) continue;
    emit_frame(out, s.view.peer, abort_message{key_, context_->rank, s.rank, true, reason_});
    s.owes_drained = true;
  }
  settle(now, out);
}

bool sender_machine::drained() const {
  return std::all_of(sinks_.begin(), sinks_.end(), [](const sink& s) { return s.in_flight.empty(); });
}

// The one release path: after the last write has drained the sinks hear it, then the pages are free.
void sender_machine::settle(time_point now, room_effects& out) {
  if (!terminal()) return;
  bool all_drained = drained();
  for (auto& s : sinks_) {
    if (!s.owes_drained || !s.in_flight.empty() || (s.stranger && !all_drained)) continue;
    s.owes_drained = false;
    if (!s.lost) emit_frame(out, s.view.peer, drained_message{key_, context_->rank, s.rank, true, reason_});
  }
  if (released_) return;
  if (!all_drained) {
    if (quarantined_) return;
    quarantined_ = true;
    fence_at_ = now + context_->quarantine_timeout;
    emit<lease_effect>(out, {lease_state::quarantined});
    return;
  }
  released_ = true;
  if (!claimed_) return;
  emit<lease_effect>(out, {lease_state::released});
  emit<free_slot_effect>(out, {slot_});
}

void sender_machine::tick(time_point now, room_effects& out) {
  note("tick");
  if (now < deadline() || finished()) return;
  auto expired = [&](const std::string& what, duration bound) {
    fail(timeout(key_, what, bound), nullptr, now, out);
  };
  switch (state()) {
    case sender_state::unclaimed:
      return expired("a sink is here, but this engine offered nothing", context_->unclaimed_timeout);
    case sender_state::offered: {
      auto w = waits();
      return fail(timeout(key_, w.who + " owed " + w.what, now - clock_.entered()), nullptr, now, out);
    }
    case sender_state::ready:
      return expired("the engine sent no chunk", context_->send_timeout);
    case sender_state::sending:
      if (giving_up_) return fail(giving_up_, nullptr, now, out);
      return give_up(timeout(key_, "not everything was sent and delivered", context_->sending_timeout), now,
                     out);
    case sender_state::confirming:
      if (giving_up_) return fail(giving_up_, nullptr, now, out);
      return expired(waits().who + " did not confirm", context_->result_timeout);
    case sender_state::succeeded:
    case sender_state::failed:
      // Our own endpoint's end stops its reads of our pages; asked again until it is answered.
      fence_at_ = now + context_->quarantine_timeout;
      for (const auto& s : sinks_)
        if (!s.in_flight.empty()) emit<fence_effect>(out, {s.view.peer});
  }
}

bool sender_machine::finished() const {
  return terminal() && released_;
}

time_point sender_machine::deadline() const {
  switch (state()) {
    case sender_state::unclaimed:
      return clock_.entered() + context_->unclaimed_timeout;
    case sender_state::offered:
      return bootstrap_deadline_;
    case sender_state::ready:
      return clock_.entered() + context_->send_timeout;
    case sender_state::sending:
      return giving_up_ ? give_up_deadline_ : clock_.entered() + context_->sending_timeout;
    case sender_state::confirming:
      return giving_up_ ? give_up_deadline_ : clock_.entered() + context_->result_timeout;
    case sender_state::succeeded:
    case sender_state::failed:
      return released_ ? time_point::max() : fence_at_;
  }
  return time_point::max();
}

waiting_on sender_machine::waits() const {
  auto since = clock_.entered();
  auto first = [&](auto lacks) -> std::string {
    auto s = std::find_if(sinks_.begin(), sinks_.end(), lacks);
    return s == sinks_.end() ? "a sink rank that did not announce" : name_of(s->view);
  };
  switch (state()) {
    case sender_state::unclaimed:
      return {"this engine", "an offer", since};
    case sender_state::offered:
      return {first([](const sink& s) { return !s.announced || !s.published; }),
              sinks_.empty() ? "an announce" : "its announce and pages", since};
    case sender_state::ready:
      return {"this engine", "the first chunk", since};
    case sender_state::sending:
      if (!row_) return {"this engine", "the last chunk", since};
      return {first([](const sink& s) { return !s.in_flight.empty(); }), "delivery of writes", since};
    case sender_state::confirming:
      return {first([](const sink& s) { return !s.confirmed; }), "its verdict", since};
    case sender_state::succeeded:
    case sender_state::failed:
      if (released_) return {"", "nothing", since};
      return {first([](const sink& s) { return !s.in_flight.empty(); }), "writes in flight to drain", since};
  }
  return {};
}

}  // namespace handoff
