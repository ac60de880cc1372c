// One control connection of the command to a running engine: hello, then messages, everything bounded in
// time.
#pragma once

#include "actors/control/message_stream.hpp"
#include "config/token_file.hpp"
#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/wire.hpp"

#include <chrono>
#include <string>

namespace handoff::tools {

class control_client {
 public:
  using clock = std::chrono::steady_clock;

  /// Connects and says hello. peer_unknown: nobody listens there; timed_out: somebody who does not answer; or
  /// the reason with which we were refused.
  static expected<control_client> connect(const std::string& address, const auth_token& token,
                                          std::chrono::milliseconds bound);
  control_client(control_client&& other) noexcept;
  control_client& operator=(control_client&&) = delete;
  ~control_client();

  template <class T>
  error send(const T& message) {
    return write(wire::encode(message));
  }
  /// The next message of this type; a refusal is its reason, any other message wire_unsupported.
  template <class T>
  expected<T> receive(clock::time_point deadline) {
    auto message = read(T::type, deadline);
    if (!message) return unexpected(message.error());
    return wire::decode_payload<T>(message->payload);
  }
  /// Who answered our hello.
  const engine_identity& peer() const { return peer_; }

 private:
  control_client(int fd, std::string address);
  error await(short events, clock::time_point deadline);
  error write(const wire::bytes& bytes);
  expected<control::message_stream::message> read(message_type wanted, clock::time_point deadline);

  int fd_;
  std::string address_;
  control::message_stream stream_;
  engine_identity peer_;
};

}  // namespace handoff::tools
