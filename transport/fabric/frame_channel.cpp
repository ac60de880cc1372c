#include "transport/fabric/frame_channel.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace handoff::transport::fabric {

namespace {
constexpr std::size_t payload_max = limits::frame_bytes - wire::header_bytes;
}

frame_channel::frame_channel(session_id session, counters& count)
    : count_(count), session_(session), memory_(2 * limits::frame_credits * limits::frame_bytes) {
  for (std::uint32_t i = 0; i < limits::frame_credits; ++i) {
    operations_.emplace_back().buffer = i;
    unposted_.push_back(i);
  }
  for (std::uint32_t i = 0; i < limits::frame_credits; ++i) {
    auto& op = operations_.emplace_back();
    op.kind = operation::kind_t::send;
    op.buffer = i;
    free_.push_back(i);
  }
}

std::int64_t frame_channel::post_receives(endpoint& e) {
  while (!unposted_.empty()) {
    const auto i = unposted_.back();
    if (auto s = e.post_receive(receive_buffer(i), operations_[i]); s != 0) return s;
    unposted_.pop_back();
  }
  return 0;
}

void frame_channel::push(outgoing_frame frame) {
  (frame.urgent ? urgent_counted_ : ordinary_counted_).push_back(true);
  flow_.push_notify(std::move(frame));
  count_.frames_queued.add();
}

void frame_channel::push_notify(outgoing_frame frame) {
  (frame.urgent ? urgent_counted_ : ordinary_counted_).push_back(false);
  flow_.push_notify(std::move(frame));
  count_.frames_queued.add();
}

frame_channel::outcome frame_channel::post(endpoint& e, message_type type, std::span<const std::byte> payload,
                                           std::uint16_t flags) {
  if (free_.empty()) return outcome::later;
  const auto i = free_.back();
  const auto message = send_buffer(i).first(wire::header_bytes + payload.size());
  std::copy(payload.begin(), payload.end(), message.begin() + wire::header_bytes);
  wire::header header;
  header.type = type;
  header.flags = flags;
  header.credits = flow_.owed();
  header.session = session_.session();
  header.sequence = session_.next_sequence();
  wire::seal(header, message);
  const auto status = e.post_send(message, operations_[limits::frame_credits + i]);
  if (status == -FI_EAGAIN) return outcome::later;
  if (status != 0) {
    failure_ = describe_failure("fi_send", status);
    return outcome::failed;
  }
  free_.pop_back();
  session_.sent();
  flow_.returned(header.credits);
  return outcome::sent;
}

frame_channel::outcome frame_channel::send(endpoint& e, frame_class c, message_type type,
                                           std::span<const std::byte> payload, std::uint16_t flags) {
  if (!flow_.may_send(c)) return outcome::no_credit;
  const auto result = post(e, type, payload, flags);
  if (result == outcome::sent) flow_.used();
  return result;
}

frame_channel::outcome frame_channel::send_next(endpoint& e, std::uint16_t flags, peer_state& state) {
  const auto* frame = flow_.next();
  if (frame == nullptr) return outcome::no_credit;
  const auto result = post(e, frame->type, frame->payload, flags);
  if (result != outcome::sent) return result;
  const bool urgent = flow_.take_next().urgent;
  auto& counted = urgent ? urgent_counted_ : ordinary_counted_;
  if (counted.front()) --(urgent ? state.urgent_queued : state.ordinary_queued);
  counted.pop_front();
  count_.frames_queued.sub();
  count_.frames_sent.add();
  return result;
}

void frame_channel::drop_queued(peer_state& state) {
  count_.frames_queued.sub(flow_.queued());
  flow_ = frame_flow();
  urgent_counted_.clear();
  ordinary_counted_.clear();
  state.urgent_queued = 0;
  state.ordinary_queued = 0;
}

expected<std::optional<frame_channel::received>> frame_channel::take(const operation& op, std::size_t bytes) {
  const auto buffer = receive_buffer(op.buffer).first(std::min(bytes, limits::frame_bytes));
  unposted_.push_back(op.buffer);
  const auto header = wire::verify(buffer, payload_max);
  if (!header) {
    count_.frames_dropped.add();
    return std::nullopt;
  }
  const auto verdict = session_.check(header->session, header->sequence);
  if (verdict != arrival::fresh) {
    count_.frames_dropped.add();
    return std::nullopt;
  }
  if (session_.missed() > 0)
    return fail(errc::wire_malformed,
                fmt::format("{} frames before number {} were lost", session_.missed(), header->sequence));
  flow_.consumed();
  if (!flow_.granted(header->credits))
    return fail(errc::wire_malformed,
                fmt::format("it returns {} credits, more than it was sent frames", header->credits));
  const auto payload = buffer.subspan(wire::header_bytes);
  return received{header->type, header->flags, {payload.begin(), payload.end()}};
}

}  // namespace handoff::transport::fabric
