// Types of the messages that cross process boundaries. Numbers are stable. Below 100: frames over libfabric
// between ranks; from 100: control connections.
#pragma once

#include <cstdint>
#include <string_view>

namespace handoff {

enum class message_type : std::uint16_t {
  none = 0,
  // transport's own
  probe = 1,
  probe_echo = 2,
  heartbeat = 3,
  credit = 4,  ///< nothing but the credits in its header
  // one room, sink rank -> source rank
  announce = 10,
  publish = 11,
  room_result = 12,
  // one room, source rank -> sink rank
  room_done = 20,
  progress = 21,
  // one room, either way
  abort = 30,
  drained = 31,
  // every control connection
  hello = 100,
  hello_ok = 101,
  refusal = 102,
  // rank <-> bootstrap
  register_rank = 110,
  register_ok = 111,
  topology_query = 112,
  topology_snapshot = 113,
  unregister_rank = 114,
  // transfer engine <-> transfer engine
  connect_request = 120,
  connect_reply = 121,
  // whoever operates an engine -> one of its ranks
  drain_request = 130,
  drain_reply = 131,
};

std::string_view to_string(message_type type);

}  // namespace handoff
