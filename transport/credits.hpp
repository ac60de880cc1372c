// Flow control of one session's frames, one direction each way. Frames have none in libfabric: every frame
// uses one posted receive of the other side, so a sender holds as many credits as there are receives and gets
// them back in the headers of frames that come the other way. Pure.
//
// The last credits are kept: ordinary frames leave `reserved` of them, heartbeats half of that, urgent frames
// one. That last one belongs to a `credit` frame, so that two sides at zero can never wait for each other.
#pragma once

#include "messages/limits.hpp"
#include "transport/transport.hpp"

#include <deque>

namespace handoff::transport {

enum class frame_class : std::uint8_t { ordinary, heartbeat, urgent, credit };

class frame_flow {
 public:
  explicit frame_flow(std::uint16_t credits = limits::frame_credits,
                      std::uint16_t reserved = limits::frame_credits_reserved,
                      std::size_t queue_max = limits::frame_queue)
      : credits_(credits), total_(credits), reserved_(reserved), queue_max_(queue_max) {}

  // -- sending

  /// Queues a frame; transport_full when `queue_max` of its class (ordinary, urgent) wait already.
  expected<void> push(outgoing_frame frame);
  /// Queues a transfer's notify; settings::transfers_max bounds how many there can be.
  void push_notify(outgoing_frame frame);
  /// The frame to send now, urgent ones first; null: none waits, or it waits for credits.
  const outgoing_frame* next() const;
  /// next() was sent: it leaves the queue and one credit is used.
  outgoing_frame take_next();
  /// May a frame of the transport's own (probe and heartbeat, credit) be sent now?
  bool may_send(frame_class c) const { return credits_ > floor(c); }
  /// A frame that did not stand in the queue was sent.
  void used() { --credits_; }
  /// Credits of an incoming header. False: the peer gave more than it ever had, and is not to be trusted.
  bool granted(std::uint16_t credits);
  std::uint16_t credits() const { return credits_; }
  std::size_t queued() const { return urgent_.size() + ordinary_.size(); }

  // -- receiving

  /// A frame was taken and its receive buffer is posted again.
  void consumed() { ++owed_; }
  /// What the next header gives back; `returned` once it was sent.
  std::uint16_t owed() const { return owed_; }
  void returned(std::uint16_t credits) { owed_ = static_cast<std::uint16_t>(owed_ - credits); }
  /// So many are owed that a `credit` frame is due if nothing else is sent.
  bool owes_frame() const { return owed_ >= total_ / 4; }

 private:
  std::uint16_t floor(frame_class c) const;

  std::uint16_t credits_, total_, reserved_;
  std::uint16_t owed_ = 0;
  std::size_t queue_max_;
  std::deque<outgoing_frame> urgent_, ordinary_;
};

}  // namespace handoff::transport
