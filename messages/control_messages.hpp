// What travels on control connections (TCP). Each begins with `hello` from the side that connected, answered
// by `hello_ok` or `refusal`; then one of these conversations:
//
//   rank -> bootstrap     register_rank (renewed before its lease ends) -> register_ok; unregister_rank when
//                         it ends in order
//                         topology_query -> topology_snapshot, sent again whenever the version changes
//   engine -> engine      connect_request -> connect_reply or refusal; a rebuild repeats it with session + 1;
//                         the connection stays open, its end is the first sign of a dead peer
//   operator -> rank      drain_request -> drain_reply, when no room is left or the deadline has passed
#pragma once

#include "messages/compatibility.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/inspect.hpp"
#include "messages/layout.hpp"
#include "messages/limits.hpp"
#include "messages/message_type.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

enum class engine_role : std::uint8_t { bootstrap = 0, prefill = 1, decode = 2 };
inline constexpr engine_role last_enumerator(engine_role) {
  return engine_role::decode;
}
std::string_view to_string(engine_role role);

/// One life of one engine rank: what peers are told apart by.
struct engine_identity {
  std::string engine;
  incarnation_id incarnation;
  rank_coord rank;
  engine_role role = engine_role::prefill;
  friend bool operator==(const engine_identity&, const engine_identity&) = default;
};

struct hello_message {
  static constexpr auto type = message_type::hello;
  std::uint16_t protocol_min = limits::protocol_min, protocol_max = limits::protocol_max;
  std::uint64_t features = 0;  ///< bits that the peer must understand
  std::string token;           ///< empty on loopback without a token
  engine_identity self;
  friend bool operator==(const hello_message&, const hello_message&) = default;
};

struct hello_ok_message {
  static constexpr auto type = message_type::hello_ok;
  std::uint16_t protocol = limits::protocol_max;
  engine_identity self;
  friend bool operator==(const hello_ok_message&, const hello_ok_message&) = default;
};

struct refusal_message {
  static constexpr auto type = message_type::refusal;
  error reason;
  friend bool operator==(const refusal_message&, const refusal_message&) = default;
};

/// One memory region as a writer sees it. `base` is what the first byte's remote address is (0 with offset
/// addressing).
struct remote_region {
  std::uint64_t key = 0, base = 0, bytes = 0;
  friend bool operator==(const remote_region&, const remote_region&) = default;
};
template <>
inline constexpr bool wire_frozen<remote_region> = true;

/// A fabric endpoint made for one peer: where it is and what may be written there. Regions stand in region_id
/// order.
struct endpoint_record {
  std::string provider;  ///< "tcp", "shm", "sim"
  std::uint16_t protocol = limits::protocol_max;
  std::string host_id;  ///< same value = same host and same /dev/shm; shm is only tried then
  std::vector<std::uint8_t> address;
  remote_region probe;  ///< 64 bytes that only the connection probe writes
  std::vector<remote_region> regions;
  friend bool operator==(const endpoint_record&, const endpoint_record&) = default;
};

struct connect_request_message {
  static constexpr auto type = message_type::connect_request;
  engine_identity self;
  session_id session;
  std::vector<endpoint_record> endpoints;  ///< one per provider offered, best first
  compatibility_record compatibility;
  layout_descriptor layout;
  std::string control_address;  ///< where the asking side listens: the other side probes it when in doubt
  friend bool operator==(const connect_request_message&, const connect_request_message&) = default;
};

struct connect_reply_message {
  static constexpr auto type = message_type::connect_reply;
  engine_identity self;
  session_id session;
  endpoint_record endpoint;  ///< of the provider that was picked
  compatibility_record compatibility;
  layout_descriptor layout;
  friend bool operator==(const connect_reply_message&, const connect_reply_message&) = default;
};

struct register_rank_message {
  static constexpr auto type = message_type::register_rank;
  engine_identity self;
  rank_topology topology;
  std::string control_address;  ///< host:port that peers connect to
  std::uint32_t lease_ms = 0;   ///< renewed by the owner before it ends
  bool draining = false;        ///< takes no new rooms
  friend bool operator==(const register_rank_message&, const register_rank_message&) = default;
};

struct register_ok_message {
  static constexpr auto type = message_type::register_ok;
  incarnation_id bootstrap;  ///< versions order within one incarnation
  std::uint64_t version = 0;
  friend bool operator==(const register_ok_message&, const register_ok_message&) = default;
};

/// Forgets this life of the rank; not answered.
struct unregister_rank_message {
  static constexpr auto type = message_type::unregister_rank;
  engine_identity self;
  friend bool operator==(const unregister_rank_message&, const unregister_rank_message&) = default;
};

struct topology_query_message {
  static constexpr auto type = message_type::topology_query;
  std::string engine;  ///< empty: all
  friend bool operator==(const topology_query_message&, const topology_query_message&) = default;
};

struct topology_entry {
  engine_identity identity;
  rank_topology topology;
  std::string control_address;
  bool draining = false;
  friend bool operator==(const topology_entry&, const topology_entry&) = default;
};

struct topology_snapshot_message {
  static constexpr auto type = message_type::topology_snapshot;
  incarnation_id bootstrap;
  std::uint64_t version = 0;
  std::vector<topology_entry> ranks;
  friend bool operator==(const topology_snapshot_message&, const topology_snapshot_message&) = default;
};

/// Takes no new rooms from now on, whatever the deadline.
struct drain_request_message {
  static constexpr auto type = message_type::drain_request;
  std::uint32_t deadline_ms = 0;  ///< for the rooms that are open
  friend bool operator==(const drain_request_message&, const drain_request_message&) = default;
};

struct drain_reply_message {
  static constexpr auto type = message_type::drain_reply;
  std::uint64_t rooms_left = 0;  ///< 0: drained
  error reason;                  ///< why rooms are left
  friend bool operator==(const drain_reply_message&, const drain_reply_message&) = default;
};

/// What the codec refuses after decoding; see messages/wire_codec.hpp.
error check_limits(const hello_message& x);
error check_limits(const endpoint_record& x);
error check_limits(const drain_request_message& x);

template <class F>
auto inspect(F& f, engine_identity& x) {
  return fields(f, "engine_identity", field("engine", x.engine), field("incarnation", x.incarnation),
                field("rank", x.rank), field("role", x.role));
}
template <class F>
auto inspect(F& f, hello_message& x) {
  return fields(f, "hello", field("protocol_min", x.protocol_min), field("protocol_max", x.protocol_max),
                field("features", x.features), field("token", x.token), field("self", x.self));
}
template <class F>
auto inspect(F& f, hello_ok_message& x) {
  return fields(f, "hello_ok", field("protocol", x.protocol), field("self", x.self));
}
template <class F>
auto inspect(F& f, refusal_message& x) {
  return fields(f, "refusal", field("reason", x.reason));
}
template <class F>
auto inspect(F& f, remote_region& x) {
  return fields(f, "remote_region", field("key", x.key), field("base", x.base), field("bytes", x.bytes));
}
template <class F>
auto inspect(F& f, endpoint_record& x) {
  return fields(f, "endpoint_record", field("provider", x.provider), field("protocol", x.protocol),
                field("host_id", x.host_id), field("address", x.address), field("probe", x.probe),
                field("regions", x.regions));
}
template <class F>
auto inspect(F& f, connect_request_message& x) {
  return fields(f, "connect_request", field("self", x.self), field("session", x.session),
                field("endpoints", x.endpoints), field("compatibility", x.compatibility),
                field("layout", x.layout), field("control_address", x.control_address));
}
template <class F>
auto inspect(F& f, connect_reply_message& x) {
  return fields(f, "connect_reply", field("self", x.self), field("session", x.session),
                field("endpoint", x.endpoint), field("compatibility", x.compatibility),
                field("layout", x.layout));
}
template <class F>
auto inspect(F& f, register_rank_message& x) {
  return fields(f, "register_rank", field("self", x.self), field("topology", x.topology),
                field("control_address", x.control_address), field("lease_ms", x.lease_ms),
                field("draining", x.draining));
}
template <class F>
auto inspect(F& f, register_ok_message& x) {
  return fields(f, "register_ok", field("bootstrap", x.bootstrap), field("version", x.version));
}
template <class F>
auto inspect(F& f, unregister_rank_message& x) {
  return fields(f, "unregister_rank", field("self", x.self));
}
template <class F>
auto inspect(F& f, topology_query_message& x) {
  return fields(f, "topology_query", field("engine", x.engine));
}
template <class F>
auto inspect(F& f, topology_entry& x) {
  return fields(f, "topology_entry", field("identity", x.identity), field("topology", x.topology),
                field("control_address", x.control_address), field("draining", x.draining));
}
template <class F>
auto inspect(F& f, topology_snapshot_message& x) {
  return fields(f, "topology_snapshot", field("bootstrap", x.bootstrap), field("version", x.version),
                field("ranks", x.ranks));
}
template <class F>
auto inspect(F& f, drain_request_message& x) {
  return fields(f, "drain_request", field("deadline_ms", x.deadline_ms));
}
template <class F>
auto inspect(F& f, drain_reply_message& x) {
  return fields(f, "drain_reply", field("rooms_left", x.rooms_left), field("reason", x.reason));
}
}  // namespace handoff
