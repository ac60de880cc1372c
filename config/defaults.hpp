// Every default and limit of the configuration, with its unit and its reason. The ranges that a file may ask
// for stand beside the keys (keys.cpp); what bounds bytes from a peer stands in messages/limits.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace handoff::defaults {

// -- timeouts: every wait of the runtime, in milliseconds ------------------------------------------

/// A room's other side may still be tokenizing, queueing or starting; a router gives up at about this time.
inline constexpr std::uint32_t room_bootstrap_ms = 120'000;
/// From "both sides known" to the first chunk (source) or the published pages (sink): a prefill queue's wait.
inline constexpr std::uint32_t room_waiting_ms = 60'000;
/// Pause between two announces of a sink room that waits for its engine: each renews the lease of the offer.
inline constexpr std::uint32_t room_announce_ms = 5'000;
/// From the first chunk to the last byte: a 128 Ki-token prompt of a 70B model over 10 Gbit/s takes 35 s.
inline constexpr std::uint32_t room_transferring_ms = 60'000;
/// From `room_done` to `room_result`: one round trip and a row copy, a stopped scheduler thread included.
inline constexpr std::uint32_t room_result_ms = 10'000;
/// A writer that neither drains nor answers for so long is fenced by the memory's owner.
inline constexpr std::uint32_t quarantine_ms = 10'000;
/// One submitted transfer (a chunk): 30 GB at 1 GB/s; shorter than the room's own bound.
inline constexpr std::uint32_t transfer_ms = 30'000;
/// TCP connect, hello and the connect conversation with one peer, the probe included.
inline constexpr std::uint32_t connect_ms = 5'000;
/// Frame, write and read back of the connection probe: two round trips.
inline constexpr std::uint32_t probe_ms = 2'000;
/// Pause between two attempts to reach the registry or a suspect peer: four tries a second do not load it.
inline constexpr std::uint32_t retry_ms = 250;
/// The registry forgets a rank that did not renew for so long: three missed renewals.
inline constexpr std::uint32_t bootstrap_lease_ms = 10'000;
inline constexpr std::uint32_t bootstrap_renew_ms = 3'000;
/// An ended room is remembered longer than its other side can still talk about it (the sum of its bounds).
inline constexpr std::uint32_t tombstone_ms = 300'000;
/// Running rooms get so long to end when the runtime drains: most prompts are through by then.
inline constexpr std::uint32_t drain_ms = 30'000;
/// An actor that has not told its status by then is shown as silent.
inline constexpr std::uint32_t status_ms = 1'000;

// -- peer death ------------------------------------------------------------------------------------

/// A beat on every idle session; two frames a second and peer cost nothing.
inline constexpr std::uint32_t heartbeat_interval_ms = 500;
/// Three missed beats: a scheduler hiccup of one second must not raise suspicion.
inline constexpr std::uint32_t suspect_after_ms = 1'500;
/// Two more missed beats: the rooms of a frozen peer fail within three seconds.
inline constexpr std::uint32_t gone_after_ms = 2'500;

// -- transport -------------------------------------------------------------------------------------

/// Bytes per write: on tcp 64 KiB writes reach half of the rate, 64 MiB ones fall out of the cache.
inline constexpr std::uint64_t write_bytes_max = 1024 * 1024;
/// Writes in flight per peer: 64 MiB at the largest write keeps 100 Gbit/s busy over 5 ms.
inline constexpr std::uint32_t window = 64;
/// Submitted and unfinished transfers of all peers; a thousand rooms with a few chunks each.
inline constexpr std::uint32_t transfers_max = 4'096;
/// Open peers; an shm endpoint costs 16 MiB and a file in /dev/shm each: 1 GiB.
inline constexpr std::uint32_t peers_max = 64;
/// Microseconds of polling before the engine thread naps or waits: about one round trip on loopback.
inline constexpr std::uint32_t spin_us = 50;
/// Longest nap where no descriptor can be waited on (shm): the first frame after silence is late by so much.
inline constexpr std::uint32_t nap_max_us = 500;

// -- limits: counts --------------------------------------------------------------------------------

/// Active rooms per rank: far beyond what fits in memory, small enough for tables made at the start.
inline constexpr std::uint32_t rooms = 65'536;
/// Changes that one room can leave unread: waiting_for_input, transferring, the terminal verdict, `released`.
inline constexpr std::uint32_t events_per_room = 4;
/// Changed verdicts and `released` events that the engine has not taken yet; never full by its relation to
/// rooms.
inline constexpr std::uint32_t events = rooms * events_per_room;
/// Remembered ended rooms; at 300 s each this serves 800 rooms a second, then the oldest is forgotten.
inline constexpr std::uint32_t tombstones = 262'144;
/// Chunks of one room: a 1 Mi-token prompt in 8 Ki chunks, sent layer by layer for 80 layers, is 10,240.
inline constexpr std::uint32_t chunks_per_room = 65'536;
/// Open control connections of one listener: peers, 64 ranks that register, tools.
inline constexpr std::uint32_t control_connections = 256;
/// Accepted connections that have not shown who they are yet; one more ends the oldest of them. Twice what
/// 64 ranks open when they start together, and a hello comes within a round trip.
inline constexpr std::uint32_t control_unauthenticated = 128;
/// New connections per second and source address, after a burst of control_connections: a host whose ranks
/// all reconnect at once is served, a flood is not.
inline constexpr std::uint32_t control_rate = 64;
/// Metadata rows: published rooms of a sink, or rooms with a last chunk under way of a source.
inline constexpr std::uint32_t slots = 1'024;
/// Tokens per page: 128 KiB per buffer of Llama-3.1-8B, a good size for one write.
inline constexpr std::uint32_t page_tokens = 64;
/// Threads of the actor system: actors only decide, copies and the network have threads of their own.
inline constexpr std::uint32_t actor_workers = 2;

// -- texts -----------------------------------------------------------------------------------------

/// Where the registry listens and is looked for: the port that serving engines use for it by habit.
inline constexpr std::string_view bootstrap_address = "127.0.0.1:8998";
/// Control listeners take a port that the kernel chooses; the registry tells it to peers.
inline constexpr std::string_view control_bind = "127.0.0.1:0";
/// Fabric endpoints (tcp): the same rule as for control listeners.
inline constexpr std::string_view transport_bind = "127.0.0.1";
/// shm after a probe on the same host, else tcp.
inline constexpr std::string_view provider = "auto";
inline constexpr std::string_view kv_dtype = "bf16";
/// Heads inside tokens, as most engines lay out their pages.
inline constexpr std::string_view kernel_packing = "nhd";
inline constexpr std::string_view log_level = "info";

// -- the file itself -------------------------------------------------------------------------------

/// A configuration is a few KiB; a larger file is not one.
inline constexpr std::size_t file_bytes = 1024 * 1024;
/// Nesting of objects and lists in a file.
inline constexpr int file_nesting = 16;
/// Errors reported at once.
inline constexpr std::size_t errors_reported = 20;

}  // namespace handoff::defaults
