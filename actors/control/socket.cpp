#include "actors/control/socket.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace handoff::control {
namespace {

/// Connections that the kernel holds for us. With few, a flood's would make peers repeat their first packet a
/// second later; whom we do not want is closed as soon as it is accepted.
constexpr int listen_backlog = 1024;

unexpected io_failure(std::string_view what, const host_port& address) {
  return fail(errc::io, fmt::format("{} {}: {}", what, to_string(address), std::strerror(errno)));
}

using addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

expected<addresses> resolve(const host_port& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int rc = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (rc != 0)
    return fail(errc::io, fmt::format("cannot resolve {}: {}", to_string(address), gai_strerror(rc)));
  return addresses{found, &freeaddrinfo};
}

}  // namespace

expected<int> listen_on(const host_port& address) {
  auto found = resolve(address, AI_PASSIVE);
  if (!found) return tl::make_unexpected(found.error());
  const auto& info = **found;
  int fd = socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return io_failure("cannot make a socket for", address);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, info.ai_addr, info.ai_addrlen) != 0 || listen(fd, listen_backlog) != 0) {
    auto failure = io_failure("cannot listen on", address);
    ::close(fd);
    return failure;
  }
  return fd;
}

expected<int> dial(const host_port& address) {
  auto found = resolve(address, 0);
  if (!found) return tl::make_unexpected(found.error());
  const auto& info = **found;
  int fd = socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return io_failure("cannot make a socket for", address);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, info.ai_addr, info.ai_addrlen) != 0 && errno != EINPROGRESS) {
    auto failure = io_failure("cannot connect to", address);
    ::close(fd);
    return failure;
  }
  return fd;
}

expected<host_port> bound_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return fail(errc::io, fmt::format("cannot read a socket's address: {}", std::strerror(errno)));
  char host[NI_MAXHOST], port[NI_MAXSERV];
  int rc = getnameinfo(reinterpret_cast<sockaddr*>(&storage), size, host, sizeof host, port, sizeof port,
                       NI_NUMERICHOST | NI_NUMERICSERV);
  if (rc != 0) return fail(errc::io, fmt::format("cannot read a socket's address: {}", gai_strerror(rc)));
  return host_port{host, static_cast<std::uint16_t>(std::stoul(port))};
}

}  // namespace handoff::control
