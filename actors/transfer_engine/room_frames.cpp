#include "actors/transfer_engine/room_frames.hpp"

#include "messages/wire.hpp"

#include <fmt/format.h>

namespace handoff {
namespace {

template <class T>
expected<room_message> decode_as(std::span<const std::byte> payload) {
  auto message = wire::decode_payload<T>(payload);
  if (!message) return tl::make_unexpected(message.error());
  return room_message(std::move(*message));
}

}  // namespace

transport::outgoing_frame encode_room_message(const room_message& message) {
  return std::visit(
      [](const auto& m) {
        using type = std::decay_t<decltype(m)>;
        transport::outgoing_frame frame;
        frame.type = type::type;
        frame.urgent = type::type == message_type::abort || type::type == message_type::drained;
        wire::encode_payload(m, frame.payload);
        return frame;
      },
      message);
}

expected<room_message> decode_room_message(message_type type, std::span<const std::byte> payload) {
  switch (type) {
    case message_type::announce:
      return decode_as<announce_message>(payload);
    case message_type::publish:
      return decode_as<publish_message>(payload);
    case message_type::room_result:
      return decode_as<room_result_message>(payload);
    case message_type::room_done:
      return decode_as<room_done_message>(payload);
    case message_type::progress:
      return decode_as<progress_message>(payload);
    case message_type::abort:
      return decode_as<abort_message>(payload);
    case message_type::drained:
      return decode_as<drained_message>(payload);
    default:
      return fail(errc::wire_unsupported, fmt::format("frame type {} ({}) is not known to this build",
                                                      static_cast<unsigned>(type), to_string(type)));
  }
}

bool is_last_word(message_type type) {
  return type == message_type::abort || type == message_type::drained || type == message_type::room_result;
}

bool goes_to_source(const room_message& message) {
  if (const auto* m = std::get_if<abort_message>(&message)) return !m->from_source;
  if (const auto* m = std::get_if<drained_message>(&message)) return !m->from_source;
  return !std::holds_alternative<room_done_message>(message) &&
         !std::holds_alternative<progress_message>(message);
}

bool addressed_to(const room_message& message, const rank_coord& rank) {
  bool to_source = goes_to_source(message);
  return std::visit([&](const auto& m) { return (to_source ? m.source : m.sink) == rank; }, message);
}

}  // namespace handoff
