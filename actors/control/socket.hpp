// The sockets under control connections: ours rather than CAF's, so that address family, limits and a connect
// that never blocks are ours too.
#pragma once

#include "config/host_port.hpp"
#include "messages/error.hpp"

namespace handoff::control {

/// A listening socket; port 0 lets the kernel choose. errc::io names address and reason.
expected<int> listen_on(const host_port& address);
/// Starts a non-blocking connect; its end is seen by whoever polls the descriptor.
expected<int> dial(const host_port& address);
/// What a bound socket is bound to.
expected<host_port> bound_address(int socket);
}  // namespace handoff::control
