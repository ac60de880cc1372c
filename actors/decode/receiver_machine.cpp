// The room's life on its sink; receiver_publish.cpp has what is published and proven.
#include "actors/decode/receiver_machine.hpp"

#include "actors/room/reasons.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {

std::string_view to_string(receiver_state state) {
  static constexpr std::string_view names[receiver_state_count] = {"resolving", "announced", "published",
                                                                   "succeeded", "failed"};
  return names[static_cast<std::size_t>(state)];
}

receiver_machine::receiver_machine(room_key key, const receiver_context& context, std::string label,
                                   time_point now)
    : key_(key), context_(&context), clock_(now), label_(std::move(label)) {
  if (context_->log) context_->log(key_, "", to_string(state()), now);
}

void receiver_machine::move(receiver_state to, time_point now) {
  clock_.move(to, key_, context_->log, now);
}

kv_poll receiver_machine::poll() const {
  switch (state()) {
    case receiver_state::resolving:
      return kv_poll::bootstrapping;
    case receiver_state::announced:
      return kv_poll::waiting_for_input;
    case receiver_state::published:
      return kv_poll::transferring;
    case receiver_state::succeeded:
      return kv_poll::success;
    case receiver_state::failed:
      return kv_poll::failed;
  }
  return kv_poll::failed;
}

bool receiver_machine::from_peer(const peer_view& from, room_key key) const {
  return key == key_ && peer_ && peer_->peer == from.peer;
}

void receiver_machine::announce(time_point now, room_effects& out) {
  note("announce");
  wanted_ = true;
  check_announced(now, out);
}

void receiver_machine::peer_found(const peer_view& peer, time_point now, room_effects& out) {
  note("peer_found");
  if (state() != receiver_state::resolving || peer_) return;
  if (auto e = layout::judge_pair(*peer.layout, *context_->layout))
    return fail(std::move(e), false, now, out);
  peer_ = peer;
  check_announced(now, out);
}

void receiver_machine::check_announced(time_point now, room_effects& out) {
  if (state() != receiver_state::resolving || !wanted_ || !peer_) return;
  send_announce(now, out);
  move(receiver_state::announced, now);
  emit<verdict_effect>(out, {kv_poll::waiting_for_input, {}, {}});
}

// Repeated while the engine has not published: it renews the lease of the source's offer.
void receiver_machine::send_announce(time_point now, room_effects& out) {
  renew_at_ =
      context_->announce_interval > duration{} ? now + context_->announce_interval : time_point::max();
  emit_frame(out, peer_->peer,
             announce_message{key_, peer_->identity.rank, context_->rank, context_->sink_ranks, label_});
}

void receiver_machine::peer_unavailable(const error& reason, time_point now, room_effects& out) {
  note("peer_unavailable");
  if (state() == receiver_state::resolving) fail(reason, false, now, out);
}

void receiver_machine::abort(error reason, time_point now, room_effects& out) {
  note("abort");
  if (reason.code == errc::ok) reason.code = errc::aborted;
  fail(std::move(reason), true, now, out);
}

void receiver_machine::peer_abort(const peer_view& from, const abort_message& message, time_point now,
                                  room_effects& out) {
  note("peer_abort");
  if (!from_peer(from, message.key)) return;
  fail(message.reason, false, now, out);
  // The source may have sent `room_done` before: it takes our word for how the room ended.
  send_result(out);
}

void receiver_machine::drained(const peer_view& from, const drained_message& message, time_point now,
                               room_effects& out) {
  note("drained");
  if (!from_peer(from, message.key) || state() == receiver_state::succeeded) return;
  // Only an ended room drains: its abort was lost or comes later.
  fail(message.reason
           ? message.reason
           : error{errc::aborted,
                   fmt::format("{}: {} ended it and did not say why", to_string(key_), name_of(from)),
                   {}},
       false, now, out);
  release(out);
}

void receiver_machine::peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out) {
  note("peer_lost");
  if (!peer_ || peer_->peer != peer || state() == receiver_state::succeeded) return;
  fail(reason, false, now, out);
  if (!released_) fence(now, out);
}

void receiver_machine::peer_closed(peer_id peer, time_point now, room_effects& out) {
  note("peer_closed");
  if (!peer_ || peer_->peer != peer || state() == receiver_state::succeeded) return;
  fail({errc::peer_gone, fmt::format("{} was closed here", name_of(*peer_)), {}}, false, now, out);
  release(out);
}

// The one way into failed. `tell`: the source may not know.
void receiver_machine::fail(error reason, bool tell, time_point now, room_effects& out) {
  if (terminal()) return;
  bool exposed = state() == receiver_state::published;
  bool known = state() != receiver_state::resolving;
  reason_ = settled_reason(std::move(reason), context_->origin);
  move(receiver_state::failed, now);
  emit<verdict_effect>(out, {kv_poll::failed, reason_, proven_});
  if (tell && known)
    emit_frame(out, peer_->peer, abort_message{key_, peer_->identity.rank, context_->rank, false, reason_});
  if (!exposed) return release(out);
  emit<lease_effect>(out, {lease_state::quarantined});
  fence_at_ = now + context_->quarantine_timeout;
}

// Shuts the source out; asked again until it is answered.
void receiver_machine::fence(time_point now, room_effects& out) {
  fence_at_ = now + context_->quarantine_timeout;
  emit<fence_effect>(out, {peer_->peer});
}

void receiver_machine::send_result(room_effects& out) {
  emit_frame(out, peer_->peer,
             room_result_message{key_, peer_->identity.rank, context_->rank, poll(), reason_});
}

// The one release path. The slot of a room that succeeded holds the row until the engine took it.
void receiver_machine::release(room_effects& out) {
  if (released_) return;
  released_ = true;
  emit<lease_effect>(out, {lease_state::released});
  if (slot_ && state() == receiver_state::failed) emit<free_slot_effect>(out, {*slot_});
}

void receiver_machine::tick(time_point now, room_effects& out) {
  note("tick");
  if (now < deadline() || finished()) return;
  switch (state()) {
    case receiver_state::resolving:
      return fail(timeout(key_, wanted_ ? "the source was not found and connected" : "no announce came",
                          context_->bootstrap_timeout),
                  false, now, out);
    case receiver_state::announced:
      if (now < clock_.entered() + context_->waiting_timeout) return send_announce(now, out);
      return fail(timeout(key_, "this engine published no pages", context_->waiting_timeout), true, now, out);
    case receiver_state::published:
      return fail(timeout(key_, name_of(*peer_) + " did not finish writing", context_->transfer_timeout),
                  true, now, out);
    case receiver_state::succeeded:
      return;
    case receiver_state::failed:
      return fence(now, out);
  }
}

bool receiver_machine::finished() const {
  return terminal() && released_;
}

time_point receiver_machine::deadline() const {
  switch (state()) {
    case receiver_state::resolving:
      return clock_.entered() + context_->bootstrap_timeout;
    case receiver_state::announced:
      return std::min(clock_.entered() + context_->waiting_timeout, renew_at_);
    case receiver_state::published:
      return clock_.entered() + context_->transfer_timeout;
    case receiver_state::succeeded:
      return time_point::max();
    case receiver_state::failed:
      return released_ ? time_point::max() : fence_at_;
  }
  return time_point::max();
}

waiting_on receiver_machine::waits() const {
  auto since = clock_.entered();
  switch (state()) {
    case receiver_state::resolving:
      if (!wanted_) return {"this engine", "an announce", since};
      return {"the source engine", "to be found and connected", since};
    case receiver_state::announced:
      return {"this engine", "the destination pages", since};
    case receiver_state::published:
      return {name_of(*peer_), "its writes and room_done", since};
    case receiver_state::succeeded:
      return {"", "nothing", since};
    case receiver_state::failed:
      if (released_) return {"", "nothing", since};
      return {name_of(*peer_), "drained, or the end of its endpoint here", since};
  }
  return {};
}

}  // namespace handoff
