#include "config/host_port.hpp"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>

namespace handoff {
namespace {

bool is_address(int family, std::string_view text, void* out) {
  if (text.find('\0') != std::string_view::npos) return false;  // inet_pton would read up to there
  return inet_pton(family, std::string(text).c_str(), out) == 1;
}

bool is_ipv6(std::string_view text) {
  in6_addr address{};
  return is_address(AF_INET6, text, &address);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_';
}

/// Only digits and dots: an IPv4 address or a mistyped one, never a name.
bool looks_like_ipv4(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

bool is_host(std::string_view host) {
  constexpr std::size_t name_bytes_max = 253;  // of DNS
  if (host.empty() || host.size() > name_bytes_max) return false;
  if (is_ipv6(host)) return true;
  in_addr address{};
  if (looks_like_ipv4(host)) return is_address(AF_INET, host, &address);
  return host.front() != '-' && host.front() != '.' &&
         std::all_of(host.begin(), host.end(), is_name_character);
}

bool is_address(std::string_view host) {
  in_addr address{};
  return is_address(AF_INET, host, &address) || is_ipv6(host);
}

bool is_wildcard(std::string_view host) {
  in_addr v4{};
  if (is_address(AF_INET, host, &v4)) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return is_address(AF_INET6, host, &v6) && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

bool is_loopback(std::string_view host) {
  in_addr v4{};
  if (is_address(AF_INET, host, &v4)) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return is_address(AF_INET6, host, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
}

expected<host_port> parse_host_port(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return fail(errc::invalid_argument, fmt::format("'{}' is no host:port: {}", text, why));
  };
  auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.back() == ']') return refuse("the port is missing");
  auto host = text.substr(0, colon), port = text.substr(colon + 1);
  bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (bracketed && !is_ipv6(host)) return refuse("brackets are for IPv6 addresses");
  if (!bracketed && host.find(':') != std::string_view::npos)
    return refuse("an IPv6 address stands in brackets, [::1]:8998");
  if (!is_host(host)) return refuse("the host is neither a name nor an address");

  host_port result{std::string(host), 0};
  auto [end, status] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (status != std::errc{} || end != port.data() + port.size()) return refuse("the port is not 0..65535");
  return result;
}

std::string to_string(const host_port& address) {
  if (is_ipv6(address.host)) return fmt::format("[{}]:{}", address.host, address.port);
  return fmt::format("{}:{}", address.host, address.port);
}

}  // namespace handoff
