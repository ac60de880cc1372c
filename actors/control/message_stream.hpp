// Cuts the bytes of one control connection into messages. Pure: bounded memory, no I/O. A malformed message
// is the end of the connection, because nothing after it can be trusted.
#pragma once

#include "messages/error.hpp"
#include "messages/wire.hpp"

#include <cstddef>
#include <vector>

namespace handoff::control {

class message_stream {
 public:
  struct message {
    wire::header header;
    wire::bytes payload;
  };

  /// `payload_max` is small until the peer has said hello.
  explicit message_stream(std::size_t payload_max) : payload_max_(payload_max) {}
  void allow(std::size_t payload_max) { payload_max_ = payload_max; }

  void push(wire::byte_span bytes);
  /// The next whole message; ok with `ready` false when more bytes are needed.
  struct next_result {
    bool ready = false;
    message what;
    error reason;
  };
  next_result next();
  std::size_t buffered() const { return buffer_.size() - consumed_; }

 private:
  std::size_t payload_max_;
  wire::bytes buffer_;
  std::size_t consumed_ = 0;
};

}  // namespace handoff::control
