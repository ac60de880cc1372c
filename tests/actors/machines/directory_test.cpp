// Our side of the registry in virtual time: registration that is kept alive, questions, bootstraps that go
// away and come back.
#include "actors/bootstrap/directory.hpp"

#include <doctest/doctest.h>

namespace handoff {
namespace {

using namespace std::chrono_literals;

time_point at(duration d) {
  return time_point{} + 1h + d;
}

struct wire_log final : control_port {
  struct dialled {
    std::uint64_t ticket;
    std::string address;
  };
  std::vector<dialled> dials;
  std::vector<std::pair<std::uint64_t, message_type>> sent;  ///< connection, type
  std::vector<wire::bytes> messages;
  void dial(std::uint64_t ticket, const std::string& address) override { dials.push_back({ticket, address}); }
  void send(control_send call) override {
    auto header = wire::verify(*call.message, limits::control_message_bytes);
    REQUIRE(header);
    sent.emplace_back(call.connection.value, header->type);
    messages.push_back(*call.message);
  }
  void close(control_close) override {}
};

constexpr auto own = "127.0.0.1:8998";

struct bench {
  wire_log wire;
  directory d{{own, 3s, 250ms, 5s, logger({}, log_level::error)}, wire};
  std::uint64_t next_connection = 100;

  void enroll(duration when = 0s) {
    registration r;
    r.what.self = {"decode-0", {5}, {}, engine_role::decode};
    r.what.control_address = "127.0.0.1:7000";
    r.what.lease_ms = 10'000;
    d.handle(r, at(when));
  }
  /// The bootstrap answers the last dial.
  std::uint64_t open(duration when) {
    control_opened opened{wire.dials.back().ticket, {++next_connection}, {}};
    d.handle(opened, at(when));
    return next_connection;
  }
  void refuse(error reason, duration when) {
    control_closed closed{wire.dials.back().ticket, {}, std::move(reason)};
    d.handle(closed, at(when));
  }
  void lose(std::uint64_t connection, duration when) {
    control_closed closed{0, {connection}, {errc::peer_gone, "died", {}}};
    d.handle(closed, at(when));
  }
  void snapshot(std::uint64_t connection, std::uint64_t life, std::uint64_t version,
                std::vector<topology_entry> ranks, duration when) {
    wire::bytes payload;
    wire::encode_payload(topology_snapshot_message{{life}, version, std::move(ranks)}, payload);
    control_received got{{connection}, {}, {}, std::make_shared<const wire::bytes>(std::move(payload))};
    got.header.type = message_type::topology_snapshot;
    d.handle(got, at(when));
  }
  void ask(std::uint64_t number, const std::string& peer, duration when) {
    d.resolve(number, peer, {}, engine_role::prefill, at(when));
  }
  int count(message_type type) const {
    return static_cast<int>(
        std::count_if(wire.sent.begin(), wire.sent.end(), [&](const auto& s) { return s.second == type; }));
  }
};

topology_entry prefill(std::uint64_t incarnation, bool draining = false) {
  return {{"prefill-0", {incarnation}, {}, engine_role::prefill}, {}, "127.0.0.1:7001", draining};
}

}  // namespace

TEST_CASE("a registration is renewed by its owner, and made again with every life of the bootstrap") {
  bench b;
  b.enroll();
  REQUIRE(b.wire.dials.size() == 1);
  CHECK(b.wire.dials[0].address == own);
  auto first = b.open(1ms);
  CHECK(b.count(message_type::register_rank) == 1);
  CHECK(b.count(message_type::topology_query) == 1);
  CHECK(b.d.deadline() == at(3001ms));
  b.d.tick(at(3001ms));
  CHECK(b.count(message_type::register_rank) == 2);

  b.lose(first, 4s);
  CHECK(b.d.deadline() == at(4250ms));
  b.d.tick(at(4250ms));
  REQUIRE(b.wire.dials.size() == 2);
  b.refuse({errc::peer_refused, "connection refused", {}}, 4251ms);  // not yet back
  b.d.tick(at(4501ms));
  REQUIRE(b.wire.dials.size() == 3);
  auto second = b.open(4502ms);
  CHECK(b.wire.sent.back().first == second);
  CHECK(b.count(message_type::register_rank) == 3);
}

TEST_CASE("a question waits for the bootstrap and is answered when it knows, or by its bound") {
  bench b;
  b.ask(1, own, 0s);
  b.refuse({errc::peer_refused, "connection refused", {}}, 1ms);
  CHECK(b.d.take_answers().empty());
  b.d.tick(at(251ms));
  auto connection = b.open(252ms);
  b.snapshot(connection, 1, 0, {}, 253ms);
  CHECK(b.d.take_answers().empty());
  b.snapshot(connection, 1, 1, {prefill(8)}, 254ms);
  auto answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].first == 1);
  CHECK(!answers[0].second.reason);
  CHECK(answers[0].second.entry.identity.incarnation.value == 8);

  b.ask(2, "prefill-9", 1s);  // by name, at our own bootstrap, which is the same
  CHECK(b.d.take_answers().empty());
  b.d.tick(at(6s));
  answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].second.reason.code == errc::peer_unknown);
  CHECK(answers[0].second.reason.detail.find("knows no prefill rank") != std::string::npos);
}

TEST_CASE("what a bootstrap said before it went away answers nobody; its next life does") {
  bench b;
  b.enroll();
  auto first = b.open(1ms);
  b.snapshot(first, 1, 7, {prefill(8)}, 2ms);
  b.lose(first, 1s);
  b.ask(1, "prefill-0", 1001ms);
  CHECK(b.d.take_answers().empty());
  b.d.tick(at(1250ms));
  auto second = b.open(1251ms);
  CHECK(b.d.take_answers().empty());
  b.snapshot(second, 2, 1, {prefill(9)}, 1300ms);  // a lower version, but of another life
  auto answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].second.entry.identity.incarnation.value == 9);
}

TEST_CASE("within one life an older snapshot changes nothing") {
  bench b;
  b.enroll();
  auto connection = b.open(1ms);
  b.snapshot(connection, 1, 7, {prefill(9)}, 2ms);
  b.snapshot(connection, 1, 6, {prefill(8)}, 3ms);
  b.ask(1, "prefill-0", 4ms);
  auto answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].second.entry.identity.incarnation.value == 9);
}

TEST_CASE("a refusal that asking again does not mend answers at once, with its own text") {
  for (auto code : {errc::wire_version, errc::wire_unsupported, errc::peer_unauthorized}) {
    bench b;
    b.ask(1, "10.0.0.7:8998", 0s);
    b.refuse({code, "no", {}}, 1ms);
    auto answers = b.d.take_answers();
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].second.reason == error{code, "no", {}});
  }
}

TEST_CASE("a draining rank is shown as draining, and another one is preferred") {
  bench b;
  b.ask(1, own, 0s);
  auto connection = b.open(1ms);
  b.snapshot(connection, 1, 1, {prefill(8, true)}, 2ms);
  auto answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].second.reason.code == errc::peer_draining);
  auto other = prefill(9);
  other.identity.engine = "prefill-1";
  b.snapshot(connection, 1, 2, {prefill(8, true), other}, 3ms);
  b.ask(2, own, 4ms);
  answers = b.d.take_answers();
  REQUIRE(answers.size() == 1);
  CHECK(!answers[0].second.reason);
  CHECK(answers[0].second.entry.identity.engine == "prefill-1");
}

TEST_CASE("draining is registered at once and with every renewal, leaving ends the registration") {
  bench b;
  b.enroll();
  b.open(1ms);
  no_new_rooms over;
  b.d.handle(over, at(2ms));
  auto last_registration = [&] {
    auto i = std::find_if(b.wire.sent.rbegin(), b.wire.sent.rend(),
                          [](const auto& s) { return s.second == message_type::register_rank; });
    auto index = static_cast<std::size_t>(b.wire.sent.rend() - i) - 1;
    return *wire::decode_payload<register_rank_message>(
        std::span(b.wire.messages[index]).subspan(wire::header_bytes));
  };
  CHECK(b.count(message_type::register_rank) == 2);
  CHECK(last_registration().draining);
  b.d.tick(at(3002ms));
  CHECK(b.count(message_type::register_rank) == 3);
  CHECK(last_registration().draining);
  b.d.leave();
  CHECK(b.wire.sent.back().second == message_type::unregister_rank);
  b.d.tick(at(10s));
  CHECK(b.count(message_type::register_rank) == 3);
}

}  // namespace handoff
