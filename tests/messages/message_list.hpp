// Every message that has a payload, once. Tests run over this list; messages_test fails when a message type
// is missing here.
#pragma once

#include "messages/control_messages.hpp"
#include "messages/room_messages.hpp"
#include "messages/wire.hpp"

#include <tuple>

namespace handoff::test {

using message_list =
    std::tuple<announce_message, publish_message, room_result_message, room_done_message, abort_message,
               drained_message, hello_message, hello_ok_message, refusal_message, register_rank_message,
               register_ok_message, topology_query_message, topology_snapshot_message,
               connect_request_message, connect_reply_message, progress_message, unregister_rank_message,
               drain_request_message, drain_reply_message>;

/// Frames that are a header and bytes of the transport, or nothing.
inline constexpr message_type without_struct[] = {message_type::none, message_type::probe,
                                                  message_type::probe_echo, message_type::heartbeat,
                                                  message_type::credit};

/// Calls f(T{}) for every message type T, in order.
template <class F>
void for_each_message(F f) {
  std::apply([&](auto... messages) { (f(messages), ...); }, message_list{});
}

}  // namespace handoff::test
