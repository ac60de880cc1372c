#include "tests/transport/fabric/remote_call.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>

namespace handoff::transport::contract {

namespace {

bool send_all(int socket, const void* from, std::size_t n) {
  const auto* at = static_cast<const char*>(from);
  while (n > 0) {
    const auto sent = send(socket, at, n, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    n -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* to, std::size_t n) {
  auto* at = static_cast<char*>(to);
  while (n > 0) {
    const auto got = recv(socket, at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

void parcel::take(void* to, std::size_t n) {
  if (bytes_.size() - read_ < n) throw std::runtime_error("a parcel is shorter than what is read from it");
  if (n > 0) std::memcpy(to, bytes_.data() + read_, n);
  read_ += n;
}

bool send_parcel(int socket, const parcel& p) {
  const std::uint64_t n = p.bytes().size();
  return send_all(socket, &n, sizeof(n)) && send_all(socket, p.bytes().data(), n);
}

bool receive_parcel(int socket, parcel& p) {
  std::uint64_t n = 0;
  if (!receive_all(socket, &n, sizeof(n))) return false;
  std::vector<std::byte> bytes(n);
  if (!receive_all(socket, bytes.data(), n)) return false;
  p = parcel(std::move(bytes));
  return true;
}

void parcelled<event>::put(parcel& p, const event& x) {
  p.put(static_cast<std::uint8_t>(x.index()));
  std::visit(
      [&](const auto& e) {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, peer_failed>)
          p.put(e.peer).put(e.session).put(e.reason);
        else if constexpr (std::is_same_v<E, frame_received>)
          p.put(e.peer).put(e.session).put(e.type).put(e.payload);
        else if constexpr (std::is_same_v<E, transfer_done>)
          p.put(e.id).put(e.peer).put(e.result).put(e.drained).put(e.bytes).put(e.blocks).put(e.writes).put(
              e.retries);
        else
          p.put(e);
      },
      x);
}

event parcelled<event>::get(parcel& p) {
  switch (p.get<std::uint8_t>()) {
    case 0:
      return p.get<peer_ready>();
    case 1: {
      peer_failed e;
      e.peer = p.get<peer_id>();
      e.session = p.get<session_id>();
      e.reason = p.get<error>();
      return e;
    }
    case 2:
      return p.get<peer_silent>();
    case 3:
      return p.get<peer_heard>();
    case 4:
      return p.get<peer_closed>();
    case 5: {
      frame_received e;
      e.peer = p.get<peer_id>();
      e.session = p.get<session_id>();
      e.type = p.get<message_type>();
      e.payload = p.get<std::vector<std::byte>>();
      return e;
    }
    default: {
      transfer_done e;
      e.id = p.get<transfer_id>();
      e.peer = p.get<peer_id>();
      e.result = p.get<error>();
      e.drained = p.get<bool>();
      e.bytes = p.get<std::uint64_t>();
      e.blocks = p.get<std::uint64_t>();
      e.writes = p.get<std::uint64_t>();
      e.retries = p.get<std::uint64_t>();
      return e;
    }
  }
}

}  // namespace handoff::transport::contract
