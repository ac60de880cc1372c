// What a control listener does with bytes that no engine sends. The engine beside them goes on serving.
#include "config/host_port.hpp"
#include "messages/wire.hpp"
#include "tests/actors/trio.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace handoff;
using namespace handoff::test;

namespace {

/// A plain blocking socket to a control listener.
class raw_connection {
 public:
  explicit raw_connection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto parsed = parse_host_port(address);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parsed->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~raw_connection() { ::close(fd_); }

  void write(const wire::bytes& bytes) { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  /// Everything until the other side closes.
  wire::bytes read_to_end() {
    wire::bytes all;
    std::array<std::byte, 4096> part;
    for (ssize_t n; (n = ::recv(fd_, part.data(), part.size(), 0)) > 0;)
      all.insert(all.end(), part.begin(), part.begin() + n);
    return all;
  }

 private:
  int fd_;
};

/// The last message before the end, which must be a refusal.
error refusal_after(const std::string& address, const std::vector<wire::bytes>& messages) {
  raw_connection c(address);
  for (const auto& m : messages) c.write(m);
  auto answer = c.read_to_end();
  wire::byte_span rest(answer);
  error reason;
  while (rest.size() >= wire::header_bytes) {
    auto header = wire::read_header(rest, limits::control_message_bytes);
    REQUIRE(header);
    auto payload = rest.subspan(wire::header_bytes, header->length);
    if (header->type == message_type::refusal)
      reason = wire::decode_payload<refusal_message>(payload)->reason;
    rest = rest.subspan(wire::header_bytes + header->length);
  }
  return reason;
}

wire::bytes hello(const std::string& name) {
  hello_message m;
  m.self = {name, {5}, {}, engine_role::decode};
  return wire::encode(m);
}

}  // namespace

TEST_CASE("bytes that are no message, or no message that is expected, are refused with a reason") {
  trio t("tcp");
  for (const auto& address : {t.prefill.rt->control_address(), t.where()}) {
    CAPTURE(address);
    auto code = [&](const std::vector<wire::bytes>& messages) {
      return refusal_after(address, messages).code;
    };
    CHECK(code({wire::bytes(64, std::byte{0x47})}) == errc::wire_malformed);
    CHECK(code({wire::encode(connect_reply_message{})}) == errc::wire_unsupported);  // before hello

    auto flipped = hello("intruder");
    flipped[wire::header_bytes + 3] ^= std::byte{1};
    CHECK(code({flipped}) == errc::wire_malformed);

    auto huge = hello("intruder");
    std::uint32_t length = 1u << 31;
    std::memcpy(huge.data() + 12, &length, sizeof length);
    CHECK(code({huge}) == errc::wire_too_large);

    hello_message future;
    future.protocol_min = future.protocol_max = limits::protocol_max + 1;
    CHECK(code({wire::encode(future)}) == errc::wire_version);
    hello_message featured;
    featured.features = 1;
    CHECK(code({wire::encode(featured)}) == errc::wire_unsupported);

    CHECK(code({hello("intruder"), wire::encode(refusal_message{})}) ==
          errc::wire_unsupported);  // nobody serves it
  }
  auto registered_as_other = refusal_after(t.where(), {hello("intruder"), wire::bytes(40, std::byte{1})});
  CHECK(registered_as_other.code == errc::wire_malformed);
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);  // undisturbed
}

TEST_CASE("a connection that never says hello is closed after the connect bound") {
  trio t("tcp", [](auto& c) {
    c.timeouts.connect_ms = 300;
    c.timeouts.probe_ms = 200;
  });
  raw_connection silent(t.prefill.rt->control_address());
  CHECK(silent.read_to_end().empty());
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}

TEST_CASE("connections beyond limits.control_connections are closed and the others served") {
  trio t("tcp", [](auto& c) { c.limits.control_connections = 4; });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  std::vector<std::unique_ptr<raw_connection>> crowd;
  for (int i = 0; i < 8; ++i)
    crowd.push_back(std::make_unique<raw_connection>(t.prefill.rt->control_address()));
  CHECK(crowd.back()->read_to_end().empty());
  hand_over(t, {2}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}
