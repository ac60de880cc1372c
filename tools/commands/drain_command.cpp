#include "config/defaults.hpp"
#include "messages/limits.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/control_client.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace handoff::tools {
namespace {

/// Beyond the deadline: the engine counts its rooms then, each of its actors within a second.
constexpr std::chrono::seconds answer_margin{5};

struct drain_options {
  std::string address, token_file;
  std::uint32_t deadline_ms = defaults::drain_ms;
};

int drain(const drain_options& o) {
  const auto complain = [&](const error& e) {
    fmt::print(stderr, "handoff drain: {}\n", to_string(e));
    const bool ours = e.code == errc::invalid_argument || exit_status(e.code) == exit_usage;
    // Whatever else keeps an engine from answering is the peer's failure.
    return ours ? exit_usage : exit_peer;
  };
  auth_token token;
  if (!o.token_file.empty()) {
    auto read = read_token_file(o.token_file, "--token-file");
    if (!read) return complain(read.error());
    token = read->token;
  }
  auto client = control_client::connect(o.address, token, std::chrono::milliseconds(defaults::connect_ms));
  if (!client) return complain(client.error());
  if (auto e = client->send(drain_request_message{o.deadline_ms})) return complain(e);
  const auto deadline =
      control_client::clock::now() + std::chrono::milliseconds(o.deadline_ms) + answer_margin;
  const auto reply = client->receive<drain_reply_message>(deadline);
  if (!reply) return complain(reply.error());
  const auto who = fmt::format("engine {} {}", client->peer().engine, to_string(client->peer().rank));
  if (reply->rooms_left == 0) {
    fmt::print("{} is drained: it has no room and takes no new ones\n", who);
    return 0;
  }
  fmt::print(stderr, "handoff drain: {}; it takes no new ones\n", to_string(reply->reason));
  return exit_rooms;
}

}  // namespace

void add_drain(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("drain", "Let a rank end its rooms and begin no new ones");
  command->footer(
      "ADDRESS is the rank's control address, as `handoff run` prints it. Its peers hear that it drains and "
      "go "
      "on.\n"
      "The rank keeps running until it is ended (SIGTERM); draining cannot be taken back.\n\n"
      "Exit status: 0 drained; 2 bad options; 3 nobody answers there, or it refuses; 5 rooms were left when "
      "the\n"
      "deadline passed.\n\n"
      "Examples:\n"
      "  handoff drain 127.0.0.1:45012\n"
      "  handoff drain 127.0.0.1:45012 --deadline-ms 5000");
  const auto o = std::make_shared<drain_options>();
  command->add_option("ADDRESS", o->address, "host:port of the rank's control listener")->required();
  command->add_option("--deadline-ms", o->deadline_ms, "How long its open rooms may take")
      ->check(CLI::Range(0u, limits::drain_deadline_ms))
      ->capture_default_str();
  command->add_option("--token-file", o->token_file, "The deployment's secret, as in security.token_file");
  command->callback([o, &status] { status = drain(*o); });
}

}  // namespace handoff::tools
