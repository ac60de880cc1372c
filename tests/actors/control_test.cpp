// What a control listener does with bytes that no engine sends. The engine beside them goes on serving.
#include "tests/actors/raw_connection.hpp"
#include "tests/actors/trio.hpp"

#include <cstring>

using namespace handoff;
using namespace handoff::test;

namespace {

/// The refusals that come back, until there are `wanted` of them or the other side closes.
std::vector<error> answers_to(const std::string& address, const std::vector<wire::bytes>& messages,
                              std::size_t wanted = SIZE_MAX) {
  raw_connection c(address);
  for (const auto& m : messages) c.write(m);
  std::vector<error> reasons;
  while (reasons.size() < wanted) {
    auto message = c.read_message();
    if (message.empty()) break;
    auto header = wire::verify(message, limits::control_message_bytes);
    REQUIRE(header);
    if (header->type != message_type::refusal) continue;
    auto payload = wire::byte_span(message).subspan(wire::header_bytes);
    reasons.push_back(wire::decode_payload<refusal_message>(payload)->reason);
  }
  return reasons;
}

error refusal_after(const std::string& address, const std::vector<wire::bytes>& messages) {
  auto reasons = answers_to(address, messages);
  return reasons.empty() ? error{} : reasons.back();
}

}  // namespace

TEST_CASE("what a stranger is named forges no line of the log") {
  trio t("tcp");
  refusal_after(t.prefill.rt->control_address(), {hello("evil\nerror forged: \x1b[31mx"), hello("twice")});
  REQUIRE(t.prefill.wait_log("evil"));
  CHECK(t.prefill.log().find("\nerror forged") == std::string::npos);
  CHECK(t.prefill.log().find("evil\\x0aerror forged: \\x1b[31mx") != std::string::npos);
}

TEST_CASE("a last word that does not decode ends the connection that brought it") {
  trio t("tcp");
  wire::header header;
  header.type = message_type::abort;
  header.length = 1;
  wire::bytes malformed(wire::header_bytes + 1);
  wire::seal(header, malformed);
  raw_connection stranger(t.prefill.rt->control_address());
  stranger.write(hello("stranger"));
  REQUIRE(stranger.read<hello_ok_message>());
  for (int i = 0; i < 20'000 && stranger.write(malformed); ++i) {
  }
  stranger.read_to_end();
  std::size_t lines = 0;
  const auto log = t.prefill.log();
  for (auto at = log.find("frame-malformed"); at != log.npos; at = log.find("frame-malformed", at + 1))
    ++lines;
  CHECK(lines == 1);
}

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
  engine decode("decode-0", engine_role::decode, registry.rt->endpoint(), "tcp", [](auto& c) {
    c.timeouts.connect_ms = 300;
    c.timeouts.probe_ms = 200;
  });
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

TEST_CASE("strangers beyond limits.control_unauthenticated end the oldest of them and nobody else") {
  trio t("tcp", [](auto& c) {
    c.limits.control_connections = 4;
    c.limits.control_unauthenticated = 2;
    c.limits.control_rate = 1'000'000;
  });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  std::vector<raw_connection> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(t.prefill.rt->control_address());
  for (int i = 0; i < 6; ++i) CHECK(crowd[static_cast<std::size_t>(i)].read_to_end().empty());
  CHECK(t.prefill.log().find("127.0.0.1 said no hello yet and makes room for others: "
                             "limits.control_unauthenticated = 2 are open") != std::string::npos);
  hand_over(t, {2}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}

TEST_CASE("a source that connects faster than limits.control_rate is refused, and others are served") {
  trio t("tcp", [](auto& c) {
    c.limits.control_connections = 4;
    c.limits.control_unauthenticated = 2;
    c.limits.control_rate = 1;
  });
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  std::vector<raw_connection> crowd;
  for (int i = 0; i < 8; ++i) crowd.emplace_back(t.prefill.rt->control_address(), "127.0.0.66");
  CHECK(crowd.back().read_to_end().empty());
  CHECK(t.prefill.log().find("connection from 127.0.0.66 refused: limit_exceeded: 127.0.0.66 opens more than "
                             "limits.control_rate = 1 a second") != std::string::npos);
  hand_over(t, {2}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
  CHECK(refusal_after(t.prefill.rt->control_address(), {hello("a"), wire::encode(refusal_message{})}).code ==
        errc::wire_unsupported);
}

TEST_CASE("a peer registers and connects as who it said it is, and as nobody else") {
  trio t("tcp");
  register_rank_message rank;
  rank.self = {"prefill-0", {5}, {}, engine_role::prefill};
  rank.control_address = "127.0.0.1:1";
  rank.lease_ms = 10'000;
  for (const auto& self : {engine_identity{"prefill-0", {5}, {}, engine_role::prefill},
                           engine_identity{"intruder", {6}, {}, engine_role::decode},
                           engine_identity{"intruder", {5}, {}, engine_role::prefill}}) {
    rank.self = self;
    auto answers = answers_to(t.where(), {hello("intruder"), wire::encode(rank)}, 1);
    REQUIRE(answers.size() == 1);
    CHECK(answers.front().code == errc::peer_refused);
    CHECK(answers.front().detail == "intruder cannot register " + self.engine);
  }
  connect_request_message request;
  request.self = {"decode-0", {5}, {}, engine_role::decode};
  request.session = {1};
  auto answers = answers_to(t.prefill.rt->control_address(), {hello("intruder"), wire::encode(request)}, 1);
  REQUIRE(answers.size() == 1);
  CHECK(answers.front().code == errc::peer_refused);
  CHECK(answers.front().detail == "hello came from intruder, connect_request from decode-0");
  hand_over(t, {1}, 9, ids({1, 2, 3}), ids({3, 2, 1}), 1);
}
