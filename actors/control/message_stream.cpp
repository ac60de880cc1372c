#include "actors/control/message_stream.hpp"

namespace handoff::control {

void message_stream::push(wire::byte_span bytes) {
  if (consumed_ > 0) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(consumed_));
    consumed_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

message_stream::next_result message_stream::next() {
  auto rest = wire::byte_span(buffer_).subspan(consumed_);
  if (rest.size() < wire::header_bytes) return {};
  auto header = wire::read_header(rest, payload_max_);
  if (!header) return {false, {}, header.error()};
  auto whole = wire::header_bytes + header->length;
  if (rest.size() < whole) return {};
  auto message = rest.first(whole);
  if (auto checked = wire::verify(message, payload_max_); !checked) return {false, {}, checked.error()};
  consumed_ += whole;
  auto payload = message.subspan(wire::header_bytes);
  return {true, {*header, wire::bytes(payload.begin(), payload.end())}, {}};
}

}  // namespace handoff::control
