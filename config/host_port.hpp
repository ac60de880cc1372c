// Network addresses as texts: "10.0.0.1:8998", "[::1]:8998", "node7:8998".
#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace handoff {

struct host_port {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
  friend bool operator==(const host_port&, const host_port&) = default;
};

/// An IPv6 address needs its brackets. Errors: invalid_argument, which says what is wrong with the text.
expected<host_port> parse_host_port(std::string_view text);
/// Brackets where the host is an IPv6 address.
std::string to_string(const host_port& address);

/// A host name by its characters, or an IPv4 or IPv6 address (without brackets).
bool is_host(std::string_view host);
/// An IPv4 or IPv6 address, no name.
bool is_address(std::string_view host);
/// 0.0.0.0 or ::, which no peer can connect to.
bool is_wildcard(std::string_view host);
/// 127.0.0.0/8 or ::1, written as an address: a name may resolve to anything.
bool is_loopback(std::string_view host);

}  // namespace handoff
