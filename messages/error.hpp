// Why something went wrong: a stable code, a text for people, and the place that saw it first. Codes cross
// the wire and appear in exit statuses and metrics, so their numbers never change; new ones get new numbers.
#pragma once

#include "messages/inspect.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace handoff {

enum class errc : std::uint16_t {
  ok = 0,                ///< no error
  unknown = 1,           ///< a code of a newer peer; its text still says what happened
  internal = 2,          ///< an invariant of ours was broken: a bug in handoff
  invalid_argument = 3,  ///< a call's argument cannot be served; the text names it
  limit_exceeded = 4,    ///< a named limit was reached
  closed = 5,            ///< the runtime is closed or draining
  timed_out = 6,         ///< a bound of the timeouts table passed; the text says who was waited for
  aborted = 7,           ///< an engine aborted the room
  io = 8,                ///< the operating system refused; the text holds its reason

  config_syntax = 20,    ///< not JSON, or not readable
  config_key = 21,       ///< unknown or missing key
  config_type = 22,      ///< wrong JSON type
  config_range = 23,     ///< value out of range
  config_relation = 24,  ///< two values contradict each other

  wire_malformed = 40,    ///< bytes from a peer do not decode
  wire_version = 41,      ///< protocol ranges do not meet
  wire_unsupported = 42,  ///< unknown message type or feature bit
  wire_too_large = 43,    ///< a length beyond the wire limits

  peer_unknown = 60,       ///< no engine of that name or address
  peer_refused = 61,       ///< the peer refused the connection or handshake
  peer_gone = 62,          ///< the peer died, or its incarnation changed
  peer_incompatible = 63,  ///< compatibility records differ
  peer_unauthorized = 64,  ///< token missing or wrong
  peer_draining = 65,      ///< the peer takes no new rooms
  layout_refused = 66,     ///< the planner cannot serve this pair of layouts

  transport_provider = 80,    ///< no usable provider, or it failed to start
  transport_region = 81,      ///< a block lies outside of what was registered
  transport_post = 82,        ///< the provider refused an operation
  transport_completion = 83,  ///< an operation completed in error
  transport_full = 84,        ///< a bounded queue of the transport is full
  transport_fenced = 85,      ///< the memory's owner fenced this peer
  transport_probe = 86,       ///< the connection probe failed

  room_duplicate = 100,     ///< this room is active already
  room_unknown = 101,       ///< no such room here
  room_superseded = 102,    ///< a newer attempt took this room over
  room_state = 103,         ///< the call does not fit the room's state
  coverage_gap = 104,       ///< not everything that the plan owes has arrived
  plan_mismatch = 105,      ///< the two sides planned different blocks
  metadata_missing = 106,   ///< the metadata row does not carry this room's stamp
  metadata_mismatch = 107,  ///< the metadata row belongs to another room: corruption
  pages_conflict = 108,     ///< pages are leased to another room

  injected = 140,  ///< failure on purpose (testing.failure_probability)
};

inline constexpr errc last_enumerator(errc) {
  return errc::injected;
}

/// The enumerator's name, for example "peer_gone".
std::string_view to_string(errc code);
/// One sentence for people.
std::string_view describe(errc code);
/// Codes of a newer peer become `unknown`.
errc errc_from_wire(std::uint16_t number);
inline errc from_wire(errc, std::uint16_t number) {
  return errc_from_wire(number);
}
/// Exit status of the command for this class of failure; see README.md.
int exit_status(errc code);

/// A failure with its first cause. `origin` names the engine and rank that saw it first, empty while local.
struct error {
  errc code = errc::ok;
  std::string detail;
  std::string origin;

  explicit operator bool() const { return code != errc::ok; }
  friend bool operator==(const error&, const error&) = default;
};

/// The error with its texts cut to limits::error_detail_bytes: what is sent.
error for_wire(const error& e);
error check_limits(const error& e);

template <class F>
auto inspect(F& f, error& x) {
  return fields(f, "error", field("code", x.code), field("detail", x.detail), field("origin", x.origin));
}

/// "peer_gone: engine prefill-0 closed its control connection (seen by decode-0 dp0 pp0 cp0 tp0)".
std::string to_string(const error& e);

template <class T>
using expected = tl::expected<T, error>;
using unexpected = tl::unexpected<error>;

inline unexpected fail(errc code, std::string detail) {
  return unexpected(error{code, std::move(detail), {}});
}

}  // namespace handoff
