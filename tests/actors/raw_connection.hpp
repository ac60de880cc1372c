// Strangers at a control listener: plain sockets that send whatever they like.
#pragma once

#include "config/host_port.hpp"
#include "messages/control_messages.hpp"
#include "messages/wire.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace handoff::test {

/// A token file of this process.
class token_file {
 public:
  explicit token_file(std::string text, mode_t mode = 0600)
      : text_(std::move(text)),
        path_(std::filesystem::temp_directory_path() / fmt::format("handoff-control-token-{}", getpid())) {
    std::ofstream(path_) << text_ << "\n";
    REQUIRE(::chmod(path_.c_str(), mode) == 0);
  }
  ~token_file() { std::filesystem::remove(path_); }
  token_file(const token_file&) = delete;
  token_file& operator=(const token_file&) = delete;
  const std::string& text() const { return text_; }
  std::string path() const { return path_.string(); }

 private:
  std::string text_;
  std::filesystem::path path_;
};

/// A plain blocking socket to a control listener; `source` is its own address on loopback.
class raw_connection {
 public:
  explicit raw_connection(const std::string& address, const char* source = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in from = at(source, 0), to = at("127.0.0.1", parse_host_port(address)->port);
    open_ = fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0 &&
            connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    linger reset{1, 0};  // thousands of ends leave no port in use
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  /// One that was accepted.
  explicit raw_connection(int fd) : fd_(fd), open_(fd >= 0) {
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~raw_connection() {
    if (fd_ >= 0) ::close(fd_);
  }
  raw_connection(raw_connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)), open_(other.open_) {}
  raw_connection& operator=(raw_connection&&) = delete;

  bool open() const { return open_; }
  /// false: the other side has closed, or took nothing for ten seconds.
  bool write(const wire::bytes& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      auto n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  void say_no_more() { ::shutdown(fd_, SHUT_WR); }

  /// Everything until the other side closes.
  wire::bytes read_to_end() {
    wire::bytes all;
    std::array<std::byte, 4096> part;
    for (ssize_t n; (n = ::recv(fd_, part.data(), part.size(), 0)) > 0;)
      all.insert(all.end(), part.begin(), part.begin() + n);
    return all;
  }

  /// One whole message; empty at the end.
  wire::bytes read_message() {
    wire::bytes message(wire::header_bytes);
    if (!read_all(message, 0)) return {};
    auto header = wire::read_header(message, limits::control_message_bytes);
    REQUIRE(header);
    message.resize(wire::header_bytes + header->length);
    if (!read_all(message, wire::header_bytes)) return {};
    return message;
  }

  /// The next message of this type; others before it are skipped, a refusal is the error.
  template <class T>
  expected<T> read() {
    for (;;) {
      auto message = read_message();
      if (message.empty()) return fail(errc::peer_gone, "the connection ended");
      auto header = wire::read_header(message, limits::control_message_bytes);
      auto payload = wire::byte_span(message).subspan(wire::header_bytes);
      if (header->type == T::type) return wire::decode_payload<T>(payload);
      if (header->type == message_type::refusal)
        return unexpected(wire::decode_payload<refusal_message>(payload)->reason);
    }
  }

 private:
  bool read_all(wire::bytes& into, std::size_t from) {
    while (from < into.size()) {
      auto n = ::recv(fd_, into.data() + from, into.size() - from, 0);
      if (n <= 0) return false;
      from += static_cast<std::size_t>(n);
    }
    return true;
  }
  static sockaddr_in at(const char* host, std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
  }

  int fd_;
  bool open_ = false;
};

/// What a peer that is no engine of ours listens with.
class raw_listener {
 public:
  raw_listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(listen(fd_, 8) == 0);
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~raw_listener() { ::close(fd_); }
  raw_listener(const raw_listener&) = delete;
  raw_listener& operator=(const raw_listener&) = delete;

  std::string address() const {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
    return fmt::format("127.0.0.1:{}", ntohs(bound.sin_port));
  }
  raw_connection accept() { return raw_connection(::accept(fd_, nullptr, nullptr)); }

 private:
  int fd_;
};

inline wire::bytes hello(const std::string& name, const std::string& token = {}) {
  hello_message m;
  m.token = token;
  m.self = {name, {5}, {}, engine_role::decode};
  return wire::encode(m);
}

}  // namespace handoff::test
