// What the router and its workers say to each other, one JSON object a line: {"kind": ..., "body": ...}.
//
//   router -> worker   setup (once), start (per room), mark (counts are at their baseline), ping, finish
//   worker -> router   ready, room (per started room, when its pages are free again), marked, pong, summary,
//                      failed (the worker cannot go on and ends)
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

/// Everything a worker needs to build its engine.
struct worker_setup {
  engine_role role = engine_role::bootstrap;
  std::string model, provider;
  std::string bootstrap;  ///< host:port; empty for the bootstrap itself
  std::string source;     ///< decode: under which peer name or address rooms are announced
  std::uint32_t page_tokens = 0;
  std::uint64_t pages = 0;
  std::uint32_t timeout_s = 0;  ///< bound of every phase of a room
  std::uint64_t seed = 0;
  sabotage_kind sabotage = sabotage_kind::none;
};

struct ready_note {
  std::string endpoint, control_address;
};

struct room_order {
  std::uint64_t room = 0, tokens = 0;
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
  std::uint64_t descriptors = 0, registrations = 0, peers = 0;
};

struct worker_summary {
  resource_counts counts;
  std::vector<std::string> leaks, findings;
  std::vector<std::string> connections;
  std::vector<std::string> shm_names;  ///< files of this process in /dev/shm
  std::uint64_t bytes_written = 0, writes = 0;
};

struct failure_note {
  std::uint16_t code = 0;
  std::string detail;
};

/// Names of the kinds.
namespace kind {
inline constexpr std::string_view setup = "setup", start = "start", mark = "mark", ping = "ping",
                                  finish = "finish", ready = "ready", room = "room", marked = "marked",
                                  pong = "pong", summary = "summary", failed = "failed";
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
