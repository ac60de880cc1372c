// What a control listener does with bytes that no engine sends. The engine beside them goes on serving.
#include "config/host_port.hpp"
#include "messages/wire.hpp"
#include "tests/actors/trio.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace handoff;
using namespace handoff::test;

namespace {

/// A token file of this test.
class token_file {
 public:
  explicit token_file(std::string text, mode_t mode = 0600)
      : text_(std::move(text)),
        path_(std::filesystem::temp_directory_path() / fmt::format("handoff-control-token-{}", getpid())) {
    std::ofstream(path_) << text_ << "\n";
    REQUIRE(::chmod(path_.c_str(), mode) == 0);
  }
  ~token_file() { std::filesystem::remove(path_); }
  const std::string& text() const { return text_; }
  std::string path() const { return path_.string(); }

 private:
  std::string text_;
  std::filesystem::path path_;
};

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

wire::bytes hello(const std::string& name, const std::string& token = {}) {
  hello_message m;
  m.token = token;
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

TEST_CASE("with a token file only who sends its token is served, and no text or answer shows it") {
  const token_file file("tokens-are-for-peers-only");
  trio t("tcp", [&](auto& c) { c.security.token_file = file.path(); });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);  // all three hold it
  for (const auto& address : {t.prefill.rt->control_address(), t.where()}) {
    CAPTURE(address);
    for (const std::string wrong : {"", "tokens-are-for-peers-onlx", "tokens-are-for-peers-only ", "t"}) {
      auto refused =
          refusal_after(address, {hello("intruder", wrong), wire::encode(topology_query_message{})});
      CHECK(refused.code == errc::peer_unauthorized);
      CHECK(refused.detail.find(wrong.empty() ? "intruder sent no token" : "intruder sent a wrong token") ==
            0);
      CHECK(refused.detail.find("security.token_file") != refused.detail.npos);
      CHECK(refused.detail.find("tokens-") == refused.detail.npos);
    }
    // Let in, so refused for what it asks next.
    CHECK(refusal_after(address, {hello("friend", file.text()), wire::encode(refusal_message{})}).code ==
          errc::wire_unsupported);
  }
  hand_over(t, {2}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  for (auto* e : {&t.bootstrap, &t.prefill, &t.decode})
    CHECK(e->log().find("tokens-are-for-peers") == std::string::npos);
}

TEST_CASE("an engine without the token is told so by the registry, and its rooms fail for that reason") {
  const token_file file("tokens-are-for-peers-only");
  engine registry("registry", engine_role::bootstrap, "", "tcp",
                  [&](auto& c) { c.security.token_file = file.path(); });
  engine decode("decode-0", engine_role::decode, registry.rt->endpoint(), "tcp");
  REQUIRE(!decode.rt->announce({1}, registry.rt->endpoint(), "request"));
  auto failed = decode.wait_poll({1}, kv_poll::failed);
  REQUIRE(failed);
  CHECK_MESSAGE(std::string(failed->reason.data()).find("decode-0 sent no token") != std::string::npos,
                failed->reason.data());
}

TEST_CASE("with a token a listener may leave loopback") {
  const token_file file("tokens-are-for-peers-only");
  trio t("tcp", [&](auto& c) {
    c.security.token_file = file.path();
    c.control.bind = c.bootstrap.bind = "0.0.0.0:0";
    c.control.advertise = "127.0.0.1";
  });
  CHECK(t.prefill.rt->control_address().rfind("127.0.0.1:", 0) == 0);
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}

TEST_CASE(
    "a runtime does not start with a token file that cannot be used, or warns of one that others read") {
  std::string log;
  runtime_options o;
  o.config = config_for("registry", "", "tcp");
  o.role = engine_role::bootstrap;
  o.log = [&](log_level, std::string_view event, std::string_view text) {
    log += fmt::format("{}: {}\n", event, text);
  };
  o.config.security.token_file = "no/such/file";
  auto made = runtime::create(o);
  REQUIRE_FALSE(made);
  CHECK(made.error().detail ==
        "/security/token_file: no/such/file: cannot be read: No such file or directory");
  const token_file file("tokens-are-for-peers-only", 0644);
  o.config.security.token_file = file.path();
  CHECK(runtime::create(o));
  CHECK_MESSAGE(log.find("token-file: /security/token_file: " + file.path() + " has mode 0644") == 0, log);
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
  trio t("tcp", [](auto& c) {
    c.limits.control_connections = 4;
    c.limits.control_unauthenticated = 2;
  });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  std::vector<std::unique_ptr<raw_connection>> crowd;
  for (int i = 0; i < 8; ++i)
    crowd.push_back(std::make_unique<raw_connection>(t.prefill.rt->control_address()));
  CHECK(crowd.back()->read_to_end().empty());
  hand_over(t, {2}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}
