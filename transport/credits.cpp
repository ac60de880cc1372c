#include "transport/credits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::transport {

std::uint16_t frame_flow::floor(frame_class c) const {
  switch (c) {
    case frame_class::ordinary:
      return std::max<std::uint16_t>(reserved_, 1);
    case frame_class::heartbeat:
      return reserved_ / 2;
    case frame_class::urgent:
      return 1;
    case frame_class::credit:
      return 0;
  }
  return total_;
}

expected<void> frame_flow::push(outgoing_frame frame) {
  auto& queue = frame.urgent ? urgent_ : ordinary_;
  if (queue.size() >= queue_max_)
    return fail(errc::transport_full,
                fmt::format("{} {}frames wait for credits of this peer, the limit of limits::frame_queue",
                            queue.size(), frame.urgent ? "urgent " : ""));
  queue.push_back(std::move(frame));
  return {};
}

void frame_flow::push_notify(outgoing_frame frame) {
  (frame.urgent ? urgent_ : ordinary_).push_back(std::move(frame));
}

const outgoing_frame* frame_flow::next() const {
  if (!urgent_.empty() && may_send(frame_class::urgent)) return &urgent_.front();
  if (!ordinary_.empty() && may_send(frame_class::ordinary)) return &ordinary_.front();
  return nullptr;
}

outgoing_frame frame_flow::take_next() {
  auto& queue = urgent_.empty() ? ordinary_ : urgent_;
  outgoing_frame frame = std::move(queue.front());
  queue.pop_front();
  used();
  return frame;
}

bool frame_flow::granted(std::uint16_t credits) {
  const bool honest = credits <= total_ - credits_;
  credits_ = honest ? static_cast<std::uint16_t>(credits_ + credits) : total_;
  return honest;
}

}  // namespace handoff::transport
