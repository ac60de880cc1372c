// Room messages as frames: encoding, decoding, and where each kind goes. Pure.
#pragma once

#include "actors/room/room_effects.hpp"
#include "messages/error.hpp"
#include "transport/transport.hpp"

#include <span>

namespace handoff {

/// Aborts and drained are urgent: they may use reserved credits.
transport::outgoing_frame encode_room_message(const room_message& message);

/// wire_unsupported for types that are no room's.
expected<room_message> decode_room_message(message_type type, std::span<const std::byte> payload);

/// abort, drained and result: what the other side must hear for a room to end alike there. They may also come
/// over the control connection, with the session in their header, when the fabric fails.
bool is_last_word(message_type type);

/// Is it for the source side of the rank (prefill), or for its sink side?
bool goes_to_source(const room_message& message);

/// Does the message name this rank on the side that it goes to?
bool addressed_to(const room_message& message, const rank_coord& rank);

}  // namespace handoff
