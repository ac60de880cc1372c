#include "config/host_port.hpp"

#include <doctest/doctest.h>

namespace handoff {

TEST_CASE("host:port texts are read and written back") {
  const struct {
    std::string text;
    host_port wanted;
  } cases[] = {
      {"127.0.0.1:0", {"127.0.0.1", 0}}, {"10.0.0.1:65535", {"10.0.0.1", 65535}},
      {"[::1]:8998", {"::1", 8998}},     {"[fe80::1:2]:7", {"fe80::1:2", 7}},
      {"node7:1", {"node7", 1}},         {"a-b.example_1.org:22", {"a-b.example_1.org", 22}},
  };
  for (const auto& c : cases) {
    INFO("text: ", c.text);
    auto parsed = parse_host_port(c.text);
    REQUIRE(parsed.has_value());
    CHECK(*parsed == c.wanted);
    CHECK(to_string(*parsed) == c.text);
  }
}

TEST_CASE("texts that are no host:port are refused with the reason") {
  const struct {
    std::string text, fragment;
  } cases[] = {
      {"", "the port is missing"},
      {"127.0.0.1", "the port is missing"},
      {"127.0.0.1:", "0..65535"},
      {":80", "neither a name nor an address"},
      {"127.0.0.1:65536", "0..65535"},
      {"127.0.0.1:-1", "0..65535"},
      {"127.0.0.1:+1", "0..65535"},
      {"127.0.0.1: 1", "0..65535"},
      {"127.0.0.1:1x", "0..65535"},
      {"127.0.0.1:80:90", "brackets"},
      {"::1:80", "brackets"},
      {"[::1]", "the port is missing"},
      {"[::1:80", "brackets"},
      {"[127.0.0.1]:80", "brackets are for IPv6"},
      {"[]:80", "brackets are for IPv6"},
      {"256.0.0.1:80", "neither"},
      {"1.2.3:80", "neither"},
      {"-node:80", "neither"},
      {"no de:80", "neither"},
      {std::string("a\0b:80", 6), "neither"},
      {std::string(254, 'a') + ":80", "neither"},
  };
  for (const auto& c : cases) {
    INFO("text: ", c.text);
    auto parsed = parse_host_port(c.text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == errc::invalid_argument);
    INFO("detail: ", parsed.error().detail);
    CHECK(parsed.error().detail.find(c.fragment) != std::string::npos);
  }
}

TEST_CASE("names are no addresses") {
  for (const auto* host : {"127.0.0.1", "10.1.2.3", "0.0.0.0", "::1", "fe80::1"}) CHECK(is_address(host));
  for (const auto* host : {"", "localhost", "node7", "10.1.2", "[::1]", "127.0.0.1:7"})
    CHECK_FALSE(is_address(host));
}

TEST_CASE("only addresses that never leave the machine are loopback") {
  for (const auto* host : {"127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1"}) CHECK(is_loopback(host));
  for (const auto* host : {"", "localhost", "126.0.0.1", "128.0.0.1", "0.0.0.0", "::", "::2", "127.1",
                           "::ffff:127.0.0.1", "[::1]", "127.0.0.1 "})
    CHECK_FALSE(is_loopback(host));
  CHECK_FALSE(is_loopback(std::string_view("127.0.0.1\0.example.org", 22)));
}

TEST_CASE("wildcards are told apart") {
  for (const auto* host : {"0.0.0.0", "::", "0::0"}) CHECK(is_wildcard(host));
  for (const auto* host : {"", "127.0.0.1", "::1", "node7"}) CHECK_FALSE(is_wildcard(host));
}

}  // namespace handoff
