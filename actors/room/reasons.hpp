// How rooms word and keep their reasons, and how machines emit effects.
#pragma once

#include "actors/room/room_effects.hpp"

#include <string>

namespace handoff {

/// The first reason of a failed room: its origin is kept or becomes `origin`; texts are cut to what a frame
/// may carry, so that both sides show the same.
error settled_reason(error reason, const std::string& origin);

/// "engine decode-0 dp0 pp0 cp0 tp0", for texts.
std::string name_of(const peer_view& peer);

/// timed_out: "room 7 attempt 1: no row within 10.0 s".
error timeout(const room_key& key, const std::string& what, duration bound);

/// peer_draining: what a room hears that comes too late. Seen by `origin`, the rank that drains.
error draining(const std::string& origin);

/// In place: g++ 12 warns of uninitialised alternatives when a variant is moved into a vector.
template <class Effect>
void emit(room_effects& out, Effect effect) {
  out.emplace_back(std::in_place_type<Effect>, std::move(effect));
}
template <class Message>
void emit_frame(room_effects& out, peer_id to, Message message) {
  send_effect& effect = std::get<send_effect>(out.emplace_back(std::in_place_type<send_effect>));
  effect.peer = to;
  effect.message.emplace<Message>(std::move(message));
}

}  // namespace handoff
