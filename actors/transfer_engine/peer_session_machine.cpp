#include "actors/transfer_engine/peer_session_machine.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

double seconds(duration d) {
  return std::chrono::duration<double>(d).count();
}

// In place: g++ 12 warns of uninitialised alternatives when a variant is moved in.
template <class Effect>
void emit(peer_session_effects& out, Effect effect) {
  out.emplace_back(std::in_place_type<Effect>, std::move(effect));
}

}  // namespace

std::string_view to_string(peer_session_state state) {
  static constexpr std::array<std::string_view, peer_session_state_count> names{"connecting", "ready",
                                                                                "suspect", "gone"};
  return names[static_cast<std::size_t>(state)];
}

peer_session_machine::peer_session_machine(engine_identity peer, session_id session,
                                           const peer_session_context& context, time_point now)
    : peer_(std::move(peer)), session_(session), context_(&context), entered_(now) {
  if (context_->log) context_->log(peer_, "", to_string(state_));
}

std::string peer_session_machine::name() const {
  return fmt::format("engine {} {} (incarnation {:016x}, session {})", peer_.engine, to_string(peer_.rank),
                     peer_.incarnation.value, session_.value);
}

error peer_session_machine::gone(std::string detail) const {
  return {errc::peer_gone, name() + " " + std::move(detail), {}};
}

// The only place that changes the state.
void peer_session_machine::move(peer_session_state to, std::string why, time_point now) {
  if (context_->log) context_->log(peer_, to_string(state_), to_string(to));
  if (log_.size() == log_length) log_.pop_front();
  log_.push_back({state_, to, now, std::move(why)});
  spent_[static_cast<std::size_t>(state_)] += now - entered_;
  state_ = to;
  entered_ = now;
}

void peer_session_machine::connected(time_point now, peer_session_effects& out) {
  note("connected");
  if (state_ != peer_session_state::connecting) return;
  move(peer_session_state::ready, "probe answered", now);
  emit<peer_ready_effect>(out, {});
}

void peer_session_machine::failed(const error& reason, time_point now, peer_session_effects& out) {
  note("failed");
  if (state_ == peer_session_state::gone) return;
  if (state_ == peer_session_state::connecting) return lose(reason, now, out);
  suspect(fabric, reason, now, out);
}

void peer_session_machine::silent(time_point now, peer_session_effects& out) {
  note("silent");
  if (state_ == peer_session_state::connecting || state_ == peer_session_state::gone) return;
  suspect(silence, gone("is silent"), now, out);
}

void peer_session_machine::heard(time_point now, peer_session_effects& out) {
  note("heard");
  clear(silence, now, out);
}

void peer_session_machine::closed(time_point now, peer_session_effects& out) {
  note("closed");
  if (closed_) return;
  closed_ = true;
  if (state_ != peer_session_state::gone) lose(gone("was closed here"), now, out);
}

void peer_session_machine::control_lost(time_point now, peer_session_effects& out) {
  note("control_lost");
  if (state_ == peer_session_state::gone) return;
  if (state_ == peer_session_state::connecting)
    return lose(gone("ended its control connection during the handshake"), now, out);
  if (!(doubts_ & (no_control | fabric)))
    return suspect(no_control, gone("ended its control connection"), now, out);
  doubts_ |= no_control;
  if (reconnects_ >= context_->reconnects_max)
    return lose(gone(fmt::format("did not answer {} reconnects", reconnects_)), now, out);
  next_reconnect_ = now + context_->reconnect_delay;
}

void peer_session_machine::control_reconnected(incarnation_id incarnation, time_point now,
                                               peer_session_effects& out) {
  note("control_reconnected");
  if (state_ != peer_session_state::suspect || !(doubts_ & (no_control | fabric))) return;
  if (incarnation != peer_.incarnation)
    return lose(gone(fmt::format("restarted as incarnation {:016x}", incarnation.value)), now, out);
  if (!(doubts_ & fabric)) return clear(no_control, now, out);
  if (!last_words_until_) last_words_until_ = now + context_->last_words;
}

void peer_session_machine::control_refused(const error& reason, time_point now, peer_session_effects& out) {
  note("control_refused");
  if (state_ != peer_session_state::suspect || !(doubts_ & (no_control | fabric))) return;
  lose(gone(fmt::format("refused to be reached again: {}", to_string(reason))), now, out);
}

void peer_session_machine::suspect(doubt cause, error reason, time_point now, peer_session_effects& out) {
  if (doubts_ & cause) return;
  bool probing = doubts_ & (no_control | fabric);
  // A broken endpoint says more than silence or an ended connection.
  if (doubts_ == none || cause == fabric) reason_ = std::move(reason);
  doubts_ |= cause;
  if (cause == silence)
    silence_deadline_ = now + context_->silent_to_gone;
  else if (!probing)
    doubt_deadline_ = now + context_->suspect_timeout;
  if (state_ == peer_session_state::ready) move(peer_session_state::suspect, reason_.detail, now);
  if (cause != silence && !probing) reconnect(now, out);
}

void peer_session_machine::clear(doubt cause, time_point now, peer_session_effects&) {
  if (state_ != peer_session_state::suspect || !(doubts_ & cause)) return;
  doubts_ &= static_cast<std::uint8_t>(~cause);
  if (cause == no_control) {
    next_reconnect_.reset();
    reconnects_ = 0;
  }
  if (doubts_ != none) return;
  reason_ = {};
  move(peer_session_state::ready, cause == silence ? "heard again" : "control connection is back", now);
}

void peer_session_machine::reconnect(time_point, peer_session_effects& out) {
  next_reconnect_.reset();
  emit<reconnect_control_effect>(out, {++reconnects_});
}

void peer_session_machine::lose(error reason, time_point now, peer_session_effects& out) {
  reason_ = std::move(reason);
  doubts_ = none;
  next_reconnect_.reset();
  last_words_until_.reset();
  move(peer_session_state::gone, reason_.detail, now);
  emit<rooms_lost_effect>(out, {reason_});
  if (!closed_) emit<fence_peer_effect>(out, {});
}

void peer_session_machine::tick(time_point now, peer_session_effects& out) {
  note("tick");
  if (now < deadline()) return;
  if (state_ == peer_session_state::connecting)
    return lose({errc::timed_out,
                 fmt::format("{} did not finish the handshake within {:.1f} s", name(),
                             seconds(context_->connect_timeout)),
                 {}},
                now, out);
  if ((doubts_ & silence) && now >= silence_deadline_)
    return lose(gone(fmt::format("stayed silent for {:.1f} s more", seconds(context_->silent_to_gone))), now,
                out);
  if ((doubts_ & (no_control | fabric)) && now >= doubt_deadline_) {
    if (doubts_ & fabric) return lose(reason_, now, out);
    return lose(
        gone(fmt::format("could not be reached again within {:.1f} s", seconds(context_->suspect_timeout))),
        now, out);
  }
  if (last_words_until_ && now >= *last_words_until_) return lose(reason_, now, out);
  if (next_reconnect_ && now >= *next_reconnect_) reconnect(now, out);
}

time_point peer_session_machine::deadline() const {
  auto at = time_point::max();
  if (state_ == peer_session_state::connecting) return entered_ + context_->connect_timeout;
  if (state_ != peer_session_state::suspect) return at;
  if (doubts_ & silence) at = std::min(at, silence_deadline_);
  if (doubts_ & (no_control | fabric)) at = std::min(at, doubt_deadline_);
  if (next_reconnect_) at = std::min(at, *next_reconnect_);
  if (last_words_until_) at = std::min(at, *last_words_until_);
  return at;
}

waiting_on peer_session_machine::waits() const {
  switch (state_) {
    case peer_session_state::connecting:
      return {name(), "the handshake and the probe", entered_};
    case peer_session_state::ready:
      return {"", "nothing", entered_};
    case peer_session_state::suspect:
      return {name(),
              doubts_ & fabric       ? "a sign of life after a fabric failure"
              : doubts_ & no_control ? "its control connection"
                                     : "a beat",
              entered_};
    case peer_session_state::gone:
      return {"this transport", closed_ ? "nothing" : "the end of the endpoint", entered_};
  }
  return {};
}

duration peer_session_machine::time_in(peer_session_state state, time_point now) const {
  auto spent = spent_[static_cast<std::size_t>(state)];
  return state == state_ ? spent + (now - entered_) : spent;
}

}  // namespace handoff
