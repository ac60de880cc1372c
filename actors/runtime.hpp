// The embedding API: what a serving engine sees of handoff. No CAF, libfabric or JSON behind this header.
//
// Threading: every call from one engine thread, except `create`, `drain`, `quiesce` and `close`, which may
// block and come from wherever the engine sets up and tears down. Nothing else blocks or calls back: calls
// check their arguments, hand the work to the runtime's own threads and return; what becomes of it arrives
// through `take_events`.
//
// Order of calls for one room (the two sides in any order relative to each other):
//   source: offer, send (last = true once), [events: verdicts, released]
//   sink:   announce, [waiting_for_input], publish, [success], commit, [released]
// Pages belong to the runtime from offer/publish until the room's `released`, which comes exactly once per
// (room, attempt), after the terminal verdict.
#pragma once

#include "actors/log/log_sink.hpp"
#include "actors/room/room_event.hpp"
#include "config/engine_config.hpp"
#include "messages/compatibility.hpp"
#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"
#include "messages/layout.hpp"
#include "messages/metadata_row.hpp"
#include "transport/sabotage_kind.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

/// One buffer of a pool: `layout.pages` items of `layout.item_bytes` from `base`. The runtime fills in
/// `layout.component`, `layout.region` and `layout.region_offset`.
struct pool_buffer {
  std::byte* base = nullptr;
  buffer_layout layout;
};

/// The pages of one cache group: all buffers share the page numbering.
struct pool_description {
  std::string name;
  std::uint32_t page_tokens = 0;
  std::uint64_t pages = 0;
  std::vector<pool_buffer> buffers;
};

/// Pages of one component in token order; the first page starts at `first_token`, a multiple of page_tokens.
struct page_span {
  component_id component;
  std::uint64_t first_token = 0;
  std::span<const page_id> pages;
  std::uint64_t prefix_tokens = 0;  ///< sink only: tokens that are here already
};

/// Tokens [first_token, last_token) of layers [first_layer, last_layer), computed and ready to be read.
struct chunk {
  std::uint64_t first_token = 0, last_token = 0;
  std::uint32_t first_layer = 0, last_layer = UINT32_MAX;
  bool last = false;  ///< the metadata row comes with this one; everything must have been sent by then
};

/// Counts that return to their baseline when no room is left; the leak oracle reads them.
struct runtime_status {
  std::uint64_t rooms = 0, rooms_succeeded = 0, rooms_failed = 0, tombstones = 0;
  std::uint64_t leases = 0, leased_pages = 0, quarantined = 0, slots_used = 0;
  std::uint64_t peers = 0, transfers_active = 0, registrations = 0, frames_queued = 0;
  std::uint64_t actors = 0;
  std::uint64_t bytes_written = 0, writes_posted = 0, frames_sent = 0, frames_received = 0,
                frames_dropped = 0;
  std::array<std::uint64_t, failure_kind_count> injected{};  ///< failures on purpose, by failure_kind
  std::vector<std::string> peer_texts;  ///< one line per peer: name, incarnation, state, provider and why
};

struct runtime_options {
  engine_config config;
  engine_role role =
      engine_role::prefill;  ///< how this engine registers; rooms of either side work in any engine
  rank_coord rank;
  rank_topology topology;
  log_sink log;
  sabotage_kind sabotage = sabotage_kind::none;  ///< faults on purpose (transport/sabotage.hpp)
  std::uint64_t sabotage_seed = 0;
};

class runtime {
 public:
  /// Starts actors and listeners; serves the registry too where the configuration or `role` says so.
  static expected<std::unique_ptr<runtime>> create(runtime_options options);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Adds a cache group; all pools come before `start`. Returns the component that pages are named by.
  expected<component_id> register_pool(const pool_description& pool);
  /// Pools are complete: registers with the bootstrap, and peers may connect from now on.
  error start();
  /// host:port of the bootstrap under which this engine is found; an engine hands it to its router.
  std::string endpoint() const;
  /// host:port of this runtime's control listener (peers, monitoring).
  std::string control_address() const;

  // source
  error offer(room_id room, std::span<const page_span> pages, std::uint64_t tokens,
              std::chrono::milliseconds lease, std::string_view label);
  error send(room_id room, const chunk& what, const metadata_row* row);

  // sink
  error announce(room_id room, std::string_view peer, std::string_view label);
  error publish(room_id room, std::span<const page_span> pages, std::uint64_t tokens);
  /// Copies the row out once and frees its slot; room_state unless the room's success was taken.
  error commit(room_id room, metadata_row& row);

  // both
  /// Fills `out` with the oldest events; returns how many.
  std::size_t take_events(std::span<room_event> out);
  /// The engine is about to wait on `wait_fd`; returns false when events are there already.
  bool arm();
  int wait_fd() const;
  /// A success that the engine has not taken yet stands: commit it, or abort again to give its row up unread.
  error abort(room_id room, std::string_view reason);
  /// true: no byte of this room is read or written here any more.
  bool quiesce(room_id room, std::chrono::milliseconds deadline);
  /// No new rooms from now on, for good: one that is offered or announced later fails with peer_draining,
  /// here and at peers, which go on otherwise. Waits for the open rooms; timed_out says how many are
  /// left. `handoff drain` begins the same from outside.
  error drain(std::chrono::milliseconds deadline);
  void close();

  runtime_status status();

 private:
  struct impl;
  explicit runtime(std::unique_ptr<impl> state);
  std::unique_ptr<impl> impl_;
};

}  // namespace handoff
