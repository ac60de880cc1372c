#include "tools/commands/control_client.hpp"

#include "actors/control/socket.hpp"
#include "messages/limits.hpp"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace handoff::tools {
namespace {

/// A request is small: a peer that takes none for so long does not read.
constexpr std::chrono::seconds write_bound{5};

std::string system_text(int number) {
  return std::generic_category().message(number);
}

}  // namespace

expected<control_client> control_client::connect(const std::string& address, const auth_token& token,
                                                 std::chrono::milliseconds bound) {
  const auto deadline = clock::now() + bound;
  const auto where = parse_host_port(address);
  if (!where) return unexpected(where.error());
  const auto fd = control::dial(*where);
  if (!fd) return fail(errc::peer_unknown, fd.error().detail);
  control_client client(*fd, address);
  if (auto e = client.await(POLLOUT, deadline)) return unexpected(std::move(e));
  int problem = 0;
  socklen_t size = sizeof problem;
  getsockopt(client.fd_, SOL_SOCKET, SO_ERROR, &problem, &size);
  if (problem != 0)
    return fail(errc::peer_unknown, fmt::format("cannot reach {}: {}", address, system_text(problem)));

  hello_message hello;
  hello.token = token.reveal();
  hello.self.engine = fmt::format("handoff command (pid {})", getpid());
  hello.self.incarnation = {static_cast<std::uint64_t>(getpid())};
  if (auto e = client.send(hello)) return unexpected(std::move(e));
  auto answer = client.receive<hello_ok_message>(deadline);
  if (!answer) return unexpected(answer.error());
  client.peer_ = std::move(answer->self);
  return client;
}

control_client::control_client(int fd, std::string address)
    : fd_(fd), address_(std::move(address)), stream_(limits::control_message_bytes) {}

control_client::control_client(control_client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      stream_(std::move(other.stream_)),
      peer_(std::move(other.peer_)) {}

control_client::~control_client() {
  if (fd_ >= 0) close(fd_);
}

error control_client::await(short events, clock::time_point deadline) {
  pollfd one{fd_, events, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count();
    const int ready = poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    if (ready > 0) return {};
    if (ready == 0) return {errc::timed_out, fmt::format("{} does not answer", address_), {}};
    if (errno != EINTR) return {errc::io, system_text(errno), {}};
  }
}

error control_client::write(const wire::bytes& bytes) {
  const auto deadline = clock::now() + write_bound;
  for (std::size_t done = 0; done < bytes.size();) {
    const auto n = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      if (auto e = await(POLLOUT, deadline)) return e;
    } else if (errno != EINTR) {
      return {errc::peer_gone, fmt::format("{} closed the connection: {}", address_, system_text(errno)), {}};
    }
  }
  return {};
}

expected<control::message_stream::message> control_client::read(message_type wanted,
                                                                clock::time_point deadline) {
  while (true) {
    auto next = stream_.next();
    if (next.reason) return unexpected(std::move(next.reason));
    if (next.ready && next.what.header.type == wanted) return std::move(next.what);
    if (next.ready && next.what.header.type == message_type::refusal) {
      auto refusal = wire::decode_payload<refusal_message>(next.what.payload);
      return unexpected(refusal ? refusal->reason : refusal.error());
    }
    if (next.ready)
      return fail(errc::wire_unsupported, fmt::format("{} answered with {} instead of {}", address_,
                                                      to_string(next.what.header.type), to_string(wanted)));
    if (auto e = await(POLLIN, deadline)) return unexpected(std::move(e));
    std::array<std::byte, 4096> part;
    const auto got = recv(fd_, part.data(), part.size(), 0);
    if (got > 0)
      stream_.push(std::span(part).first(static_cast<std::size_t>(got)));
    else if (got == 0)
      return fail(errc::peer_gone, fmt::format("{} closed the connection without an answer", address_));
    else if (errno != EAGAIN && errno != EINTR)
      return fail(errc::peer_gone, fmt::format("{}: {}", address_, system_text(errno)));
  }
}

}  // namespace handoff::tools
