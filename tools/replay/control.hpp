// What the router and its workers say to each other, one JSON object a line: {"kind": ..., "body": ...}.
//
//   router -> worker   setup (once), start (per room), abort (a room), mark (counts are at their baseline),
//                      ping, finish (no room is left; may come several times)
//   worker -> router   ready, room (per started room, when its pages are free again), marked, pong, summary,
//                      breakpoint (testing.breakpoint was met), failed (the worker cannot go on and ends)
//
// A worker ends when its input does.
#pragma once

#include "actors/runtime.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handoff::replay {

/// Failures on purpose, as in config/testing.hpp.
struct worker_faults {
  failure_probabilities failure_probability{};
  std::string breakpoint, breakpoint_action{"stop"};
};

/// How soon the dead and the silent are noticed; 0: the configuration's default.
struct worker_bounds {
  std::uint32_t heartbeat_ms = 0, suspect_ms = 0, gone_ms = 0;
  std::uint32_t lease_ms = 0, renew_ms = 0;
  std::uint32_t connect_ms = 0;  ///< the probe too
  std::uint32_t offer_ms = 0;    ///< an offer that no sink has met; 0: all phases of a room
};

/// Everything a worker needs to build its engine.
struct worker_setup {
  engine_role role = engine_role::bootstrap;
  std::string name;  ///< empty: engine_name(role)
  std::string model, provider;
  std::string bootstrap;  ///< host:port; for the bootstrap itself where it listens, empty: any free port
  std::string source;     ///< decode: under which peer name or address rooms are announced
  std::uint32_t page_tokens = 0;
  std::uint64_t pages = 0;
  std::uint32_t timeout_s = 0;  ///< bound of every phase of a room
  std::uint64_t seed = 0;
  sabotage_kind sabotage = sabotage_kind::none;
  worker_faults faults;
  worker_bounds bounds;
  bool quiet = false;  ///< only errors reach the standard error output
};

struct ready_note {
  std::string endpoint, control_address;
};

struct room_order {
  std::uint64_t room = 0, tokens = 0;
  std::string source;  ///< decode: of this engine; empty: the setup's
};

/// One room on one side, told once its pages are free again.
struct room_outcome {
  std::uint64_t room = 0;
  std::string failure;  ///< empty: success; else the error code's name
  std::string reason;
  std::uint64_t started_ns = 0, succeeded_ns = 0;  ///< CLOCK_MONOTONIC, the same in all processes
  std::uint64_t pages = 0, bytes_verified = 0, wrong_bytes = 0;
  std::vector<std::string> findings;
};

/// What a worker holds at one moment.
struct resource_counts {
  std::uint64_t descriptors = 0, registrations = 0, peers = 0, actors = 0;
  std::uint64_t maps = 0;  ///< of files, /dev/shm among them
  bool operator==(const resource_counts&) const = default;
};

struct worker_summary {
  resource_counts counts;
  std::vector<std::string> leaks, findings;
  std::vector<std::string> connections;
  std::vector<std::string> shm_names;  ///< files of this process in /dev/shm
  std::uint64_t bytes_written = 0, writes = 0;
  std::array<std::uint64_t, failure_kind_count> injected{};
};

struct breakpoint_note {
  std::string where;
};

struct failure_note {
  std::uint16_t code = 0;
  std::string detail;
};

/// Names of the kinds.
namespace kind {
inline constexpr std::string_view setup = "setup", start = "start", abort = "abort", mark = "mark",
                                  ping = "ping", finish = "finish", ready = "ready", room = "room",
                                  marked = "marked", pong = "pong", summary = "summary",
                                  breakpoint = "breakpoint", failed = "failed";
}  // namespace kind

struct control_line {
  std::string kind;
  std::string body;  ///< JSON text
};
/// wire_malformed: not one of our lines.
expected<control_line> parse_line(std::string_view line);

/// One line without its end; bodies: the structs above, or nothing.
std::string make_line(std::string_view kind);
template <class T>
std::string make_line(std::string_view kind, const T& body);
template <class T>
expected<T> body_of(const control_line& line);

}  // namespace handoff::replay
