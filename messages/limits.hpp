// Limits of what crosses a process boundary. A receiver checks them before it allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace handoff::limits {

/// Protocol range that this build speaks.
inline constexpr std::uint16_t protocol_min = 1, protocol_max = 1;

/// One frame over libfabric, header included: the size of a posted receive.
inline constexpr std::size_t frame_bytes = 8 * 1024;
/// Posted receives per session, therefore credits: 64 x 8 KiB = 512 KiB per peer.
inline constexpr std::uint16_t frame_credits = 64;
/// Credits that only abort, drained, heartbeat and credit frames may use.
inline constexpr std::uint16_t frame_credits_reserved = 8;
/// Frames that may wait for credits per peer before the peer counts as suspect.
inline constexpr std::size_t frame_queue = 4096;

/// One message on a control connection, header included: a layout of 1,000 buffers fits.
inline constexpr std::size_t control_message_bytes = 1024 * 1024;
/// Before authentication a peer may send no more than this.
inline constexpr std::size_t control_hello_bytes = 4 * 1024;
/// Unsent bytes of one control connection before it is closed.
inline constexpr std::size_t control_write_bytes = 8 * 1024 * 1024;
/// Received bytes of one control connection that nobody has looked at yet before it is closed.
inline constexpr std::size_t control_unprocessed_bytes = 8 * 1024 * 1024;

/// How long a drain may be asked to wait for open rooms: a day.
inline constexpr std::uint32_t drain_deadline_ms = 86'400'000;

/// An engine's name, and a host:port where it listens (a host name has 253 bytes at most).
inline constexpr std::size_t engine_name_bytes = 128, address_bytes = 264;

/// A string of any message.
inline constexpr std::size_t string_bytes = 4 * 1024;
/// A room's label (request id and trace id of the engine).
inline constexpr std::size_t label_bytes = 128;
/// An error text on the wire; longer ones are cut.
inline constexpr std::size_t error_detail_bytes = 512;
/// Elements of any list in a message.
inline constexpr std::size_t list_length = 64 * 1024;
/// Nesting of structs in a message.
inline constexpr int nesting = 8;

/// Parts of one publish, each at most one frame: 256 x ~1,000 runs.
inline constexpr std::uint16_t publish_parts = 256;
/// Page runs in one publish part: 6 KiB of an 8 KiB frame.
inline constexpr std::size_t publish_runs_per_part = 768;

/// Buffers of a rank's layout; regions are as many.
inline constexpr std::size_t layout_buffers = 4096;
inline constexpr std::size_t layout_components = 64;

}  // namespace handoff::limits
