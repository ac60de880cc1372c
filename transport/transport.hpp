// The one interface that every transport implements: register memory, open and connect peers, write plans,
// send frames, fence. Written for RDM endpoints; `sim`, `shm` and `tcp` pass the same contract suite
// (tests/transport/).
//
// Threading: calls come from one thread at a time (the transfer engine actor). Calls never block on a peer;
// opening a peer and registering memory may take about a millisecond. Events are handed to the sink in
// batches, from the transport's engine thread (fabric) or from inside `sim_world::advance` (sim); the sink
// must return quickly and must not call back into the transport.
//
// Guarantees, whatever the provider:
//  - keys, bounds and lengths are validated before anything is posted; a block outside of its regions is an
//  error of
//    `submit` and writes nothing;
//  - a transfer ends in exactly one `transfer_done`, at its deadline at the latest; `ok` means every byte is
//  visible in
//    the peer's memory, `last_blocks` were written only after all of `blocks` were delivered, and `notify`
//    was sent only after that ("flush, then notify"); after `transfer_done` of any kind the transport neither
//    reads the source nor writes the destination for it any more, unless `drained` is false: then only the
//    peer's fence or this endpoint's end (`peer_closed`) ends it;
//  - after `peer_fenced` no byte of that peer can land in this process's memory;
//  - frames of one session arrive in order, at most once; a frame of another session is dropped and counted.
#pragma once

#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/layout.hpp"
#include "messages/message_type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace handoff::transport {

/// Steady time; the fabric uses the steady clock, sim a virtual one.
using time_point = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using duration = std::chrono::nanoseconds;

/// Memory of this process that peers may write to (sinks) or that is read from (sources).
struct memory_region {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  memory_kind kind = memory_kind::host;
  /// false: only read from here. Peers see an empty region {0, 0, 0} in its place and get no key for it.
  bool shown = true;
};

/// One copy: (region, offset) here -> (region, offset) of the peer.
struct block {
  region_id local;
  std::uint64_t local_offset = 0;
  region_id remote;
  std::uint64_t remote_offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const block&, const block&) = default;
};

/// A payload that the transport puts behind a header (session, sequence, credits, checksum).
struct outgoing_frame {
  message_type type = message_type::none;
  std::vector<std::byte> payload;  ///< at most limits::frame_bytes - wire::header_bytes
  bool urgent = false;             ///< abort, drained: may use reserved credits and overtakes queued frames
};

struct transfer {
  transfer_id id;
  peer_id peer;
  std::vector<block> blocks;
  std::vector<block> last_blocks;
  std::optional<outgoing_frame> notify;
  duration timeout{};
};

// -- events --------------------------------------------------------------------------------------

/// The probe (frame, write, read back) succeeded in both directions.
struct peer_ready {
  peer_id peer;
  session_id session;
};
/// The probe failed or the peer's endpoint broke; nothing more is posted. `fence` or `close_peer` frees the
/// endpoint.
struct peer_failed {
  peer_id peer;
  session_id session;
  error reason;
};
/// Nothing was heard for settings::silence_after; progress of writes counts as hearing.
struct peer_silent {
  peer_id peer;
  session_id session;
  duration silent_for{};
};
/// A silent peer was heard again.
struct peer_heard {
  peer_id peer;
  session_id session;
};
/// Answer to `fence` and to `close_peer`: the endpoint and its registrations are gone.
struct peer_closed {
  peer_id peer;
  session_id session;
  bool fenced = false;
};
struct frame_received {
  peer_id peer;
  session_id session;
  message_type type = message_type::none;
  std::vector<std::byte> payload;
};
struct transfer_done {
  transfer_id id;
  peer_id peer;
  error result;         ///< ok: delivered
  bool drained = true;  ///< no operation of this transfer is in the provider any more
  std::uint64_t bytes = 0, blocks = 0, writes = 0, retries = 0;
};

using event = std::variant<peer_ready, peer_failed, peer_silent, peer_heard, peer_closed, frame_received,
                           transfer_done>;

class event_sink {
 public:
  virtual ~event_sink() = default;
  virtual void on_events(std::span<event> events) = 0;
};

// -- settings and status ---------------------------------------------------------------------------

/// All bounds of one transport; config/ fills it from its defaults.
struct settings {
  std::uint64_t write_bytes_max = 1 << 20;  ///< larger blocks are split
  std::uint32_t window = 64;                ///< writes in flight per peer
  std::uint32_t transfers_max = 4096;       ///< submitted and unfinished, all peers
  std::uint32_t peers_max = 64;             ///< shm costs 16 MiB each
  duration probe_timeout = std::chrono::seconds(2);
  duration heartbeat_interval = std::chrono::milliseconds(500);
  duration silence_after = std::chrono::milliseconds(1500);
  duration spin = std::chrono::microseconds(50);  ///< polling before the first nap
  duration nap_max =
      std::chrono::microseconds(500);      ///< longest nap where there is no descriptor to wait on (shm)
  std::string host_id;                     ///< see endpoint_record::host_id
  std::string bind_address = "127.0.0.1";  ///< tcp only
  incarnation_id incarnation;              ///< names shm objects
};

struct status {
  std::uint64_t regions = 0, registrations = 0, peers = 0;
  std::uint64_t transfers_active = 0, writes_in_flight = 0, frames_queued = 0;
  std::uint64_t transfers_done = 0, transfers_failed = 0, bytes_written = 0, writes_posted = 0,
                writes_retried = 0;
  std::uint64_t frames_sent = 0, frames_received = 0, frames_dropped = 0;
};

// -- the transport ---------------------------------------------------------------------------------

class transport {
 public:
  transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;
  virtual ~transport() = default;  ///< closes

  /// Provider names this instance can open, best first ("shm", "tcp"; "sim").
  virtual std::vector<std::string> providers() const = 0;

  /// Regions get ids 0, 1, ... in this order and must be registered before the first peer is opened.
  virtual expected<region_id> register_region(memory_region region) = 0;
  /// Refused (room_state) while a peer is open: its keys were shown to that peer. The id is not given again;
  /// peers see an empty region in its place.
  virtual expected<void> unregister_region(region_id region) = 0;

  /// Makes the local endpoint for one peer and session, with fresh random keys. Errors: transport_provider,
  /// limit_exceeded (peers_max). `peer` must not be open.
  virtual expected<endpoint_record> open_peer(peer_id peer, session_id session,
                                              const std::string& provider) = 0;
  /// Starts connecting to the peer's endpoint; ends in `peer_ready` or `peer_failed` within probe_timeout.
  virtual expected<void> connect_peer(peer_id peer, const endpoint_record& remote) = 0;

  /// Queues a transfer. Errors, with nothing queued: transport_region, transport_full, peer_gone (not ready).
  virtual expected<void> submit(transfer t) = 0;
  /// Queues a frame. Errors: transport_full, wire_too_large, peer_gone (not ready).
  virtual expected<void> send_frame(peer_id peer, outgoing_frame frame) = 0;

  /// Memory owner's act: closes the endpoint and the registrations made for this peer; its unfinished
  /// transfers end with transport_fenced. Ends in `peer_closed{fenced = true}`; an unknown peer is answered
  /// too.
  virtual void fence(peer_id peer) = 0;
  /// Orderly end of an idle or failed peer; same as fence, reported as fenced = false. Transfers end with
  /// peer_gone.
  virtual void close_peer(peer_id peer) = 0;

  virtual status current_status() const = 0;
  /// Ends every peer and the engine thread; no event after it returns. Idempotent.
  virtual void close() = 0;
};

}  // namespace handoff::transport
