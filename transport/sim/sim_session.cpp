// sim_peer's frames: probe, heartbeats, sequence check, end of the other side.
#include "transport/sim/sim_transport.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::transport {

using namespace std::chrono_literals;

// -- sending ---------------------------------------------------------------------------------------

void sim_peer::transmit(message_type type, std::vector<std::byte> payload) {
  sim_frame frame;
  frame.type = type;
  frame.session = session_.session();
  frame.sequence = session_.next_sequence();
  frame.credits = flow_.owed();
  frame.payload = std::move(payload);
  session_.sent();
  flow_.returned(frame.credits);
  heartbeat_.sent(owner_.wire().now());
  owner_.wire().send(process(), remote_address_, std::move(frame));
}

void sim_peer::transmit_own(message_type type, frame_class c, std::vector<std::byte> payload) {
  if (!flow_.may_send(c)) return;
  flow_.used();
  transmit(type, std::move(payload));
}

// -- receiving -------------------------------------------------------------------------------------

void sim_peer::frame_arrived(const sim_frame& frame) {
  if (stage_ == stage::failed) return;
  if (frame.session != session_.session()) {
    ++owner_.totals.frames_dropped;
    return;
  }
  if (!frame.copy) {
    flow_.granted(frame.credits);
    flow_.consumed();
  }
  if (!frame.lost) take(frame);
  pump();
}

void sim_peer::take(const sim_frame& frame) {
  const bool late = session_.check(frame.session, frame.sequence) == arrival::late;
  if (late) ++owner_.wire().counts.frames_late;
  if (late && !frame.raw) {
    ++owner_.totals.frames_dropped;
    return;
  }
  heard();
  switch (frame.type) {
    case message_type::probe:
    case message_type::probe_echo:
      return probe_frame(frame);
    case message_type::heartbeat:
    case message_type::credit:
      return peer_is_ready();
    default:
      break;
  }
  peer_is_ready();
  if (stage_ != stage::ready) {
    ++owner_.totals.frames_dropped;
    return;
  }
  ++owner_.totals.frames_received;
  owner_.emit(frame_received{peer_, session_.session(), frame.type, frame.payload});
}

void sim_peer::heard() {
  if (silence_.heard(owner_.wire().now()) && stage_ == stage::ready)
    owner_.emit(peer_heard{peer_, session_.session()});
}

// -- probe -----------------------------------------------------------------------------------------

// Each side writes a nonce into the other's probe memory and, once that is delivered, sends it as a frame.
// The other side reads its memory, compares, and echoes. Ready is who has compared and was echoed; any of the
// frames may be lost, so the probe is repeated.

void sim_peer::probe() {
  if (stage_ != stage::connecting) return;
  post_write({nullptr, true, nullptr}, remote_.probe, 0, probe_source_);
  at(owner_.wire().now() + owner_.limits().probe_timeout / 8, &sim_peer::probe);
  echo();
}

void sim_peer::echo() {
  if (probed_)
    transmit_own(message_type::probe_echo, frame_class::heartbeat,
                 {probe_memory_.begin(), probe_memory_.begin() + sizeof(std::uint64_t)});
}

void sim_peer::probe_frame(const sim_frame& frame) {
  const bool echoed = frame.type == message_type::probe_echo;
  const auto& expected_bytes = echoed ? probe_source_ : probe_memory_;
  const bool right = frame.payload.size() == sizeof(std::uint64_t) &&
                     std::equal(frame.payload.begin(), frame.payload.end(), expected_bytes.begin());
  if (!right) return;
  (echoed ? answered_ : probed_) = true;
  if (!echoed && stage_ != stage::opened) echo();
  try_ready();
}

/// What a ready peer sends proves that it has our echo and gave its own.
void sim_peer::peer_is_ready() {
  answered_ = true;
  try_ready();
}

void sim_peer::try_ready() {
  if (stage_ != stage::connecting || !probed_ || !answered_) return;
  stage_ = stage::ready;
  const time_point now = owner_.wire().now();
  silence_ = silence_watch(owner_.limits().silence_after, now);
  owner_.emit(peer_ready{peer_, session_.session()});
  at(now, &sim_peer::tick);
}

void sim_peer::probe_deadline() {
  if (stage_ != stage::connecting) return;
  fail_peer({errc::transport_probe,
             fmt::format("peer {}: {} within {} ms", peer_.value,
                         probed_ ? "our probe was not answered" : "no probe of the other side arrived",
                         owner_.limits().probe_timeout / 1ms),
             {}});
}

// -- liveness --------------------------------------------------------------------------------------

void sim_peer::tick() {
  if (stage_ != stage::ready) return;
  const time_point now = owner_.wire().now();
  if (now >= heartbeat_.due()) {
    transmit_own(message_type::heartbeat, frame_class::heartbeat);
    heartbeat_.sent(now);
  }
  if (const auto silent_for = silence_.check(now))
    owner_.emit(peer_silent{peer_, session_.session(), *silent_for});
  at(std::max(std::min(heartbeat_.due(), silence_.due()), now + 1us), &sim_peer::tick);
}

void sim_peer::fail_peer(error reason) {
  stage_ = stage::failed;
  flow_ = frame_flow();
  owner_.emit(peer_failed{peer_, session_.session(), reason});
  for (auto r = runs_.begin(); r != runs_.end();) {
    run& current = *r++;
    current.cursor.stop({errc::peer_gone, reason.detail, {}});
    settle(current);
  }
}

void sim_peer::remote_ended() {
  if (stage_ == stage::connecting || stage_ == stage::ready)
    fail_peer({errc::peer_gone, fmt::format("peer {} ended its endpoint", peer_.value), {}});
  // Nothing can land in an endpoint that is gone: what is in flight completes in error.
  for (auto& [id, op] : std::exchange(operations_, {})) {
    if (op.of == nullptr) continue;
    op.of->cursor.write_failed({errc::transport_completion, "the target's endpoint has ended", {}});
    settle(*op.of);
  }
}

}  // namespace handoff::transport
