// Frames of one peer and session: buffers, headers, credits, order. Runs on the engine thread.
#pragma once

#include "messages/wire.hpp"
#include "transport/credits.hpp"
#include "transport/fabric/counters.hpp"
#include "transport/fabric/endpoint.hpp"
#include "transport/frame_session.hpp"

#include <deque>
#include <optional>

namespace handoff::transport::fabric {

/// In header.flags: writes are on their way, so a side without a wait descriptor had better poll.
inline constexpr std::uint16_t flag_writing = 1;

class frame_channel {
 public:
  frame_channel(session_id session, counters& count);

  /// Posts every receive buffer that is not; 0, or a negative fi_errno.
  std::int64_t post_receives(endpoint& e);

  /// Queues a caller's frame; `state` counts it until it is sent, and the caller has checked the bound.
  void push(outgoing_frame frame);
  /// Queues the notify of a transfer.
  void push_notify(outgoing_frame frame);

  enum class outcome : std::uint8_t { sent, no_credit, later, failed };
  /// Sends a frame of the transport's own now, past the queue.
  outcome send(endpoint& e, frame_class c, message_type type, std::span<const std::byte> payload,
               std::uint16_t flags);
  /// Sends the next queued frame; `no_credit` also where none waits.
  outcome send_next(endpoint& e, std::uint16_t flags, peer_state& state);
  /// The peer is gone: what waits is dropped.
  void drop_queued(peer_state& state);
  /// The last `failed`.
  const std::string& failure() const { return failure_; }

  void sent(const operation& op) { free_.push_back(op.buffer); }

  struct received {
    message_type type = message_type::none;
    std::uint16_t flags = 0;
    std::vector<std::byte> payload;
  };
  /// A receive completed. Nothing: the frame was dropped. Errors: the peer breaks the rules.
  expected<std::optional<received>> take(const operation& op, std::size_t bytes);

  frame_flow& flow() { return flow_; }
  const frame_flow& flow() const { return flow_; }

 private:
  std::span<std::byte> receive_buffer(std::uint32_t i) { return slice(i); }
  std::span<std::byte> send_buffer(std::uint32_t i) { return slice(limits::frame_credits + i); }
  std::span<std::byte> slice(std::size_t i) {
    return {memory_.data() + i * limits::frame_bytes, limits::frame_bytes};
  }

  outcome post(endpoint& e, message_type type, std::span<const std::byte> payload, std::uint16_t flags);

  counters& count_;
  frame_session session_;
  frame_flow flow_;
  std::vector<std::byte> memory_;     // receive buffers, then send buffers
  std::deque<operation> operations_;  // in the same order; addresses stay
  std::vector<std::uint32_t> unposted_, free_;
  std::deque<bool> urgent_counted_, ordinary_counted_;  // parallel to the flow's queues: in peer_state?
  std::string failure_;
};

}  // namespace handoff::transport::fabric
