// Replays over three real processes: clean ones on every provider, and each kind of harm seen and named.
#include "tests/tools/command_process.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace handoff::test;

namespace {

std::vector<std::string> replay(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments{"replay", "--model", "smollm2-135m", "--token-scale", "1/64"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

void check_contains(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != text.npos, part, " is not in:\n", text);
}

/// Harm done to a replay of 40 requests; returns what it found.
std::string found_by(const std::string& kind, const std::string& provider) {
  CAPTURE(kind);
  CAPTURE(provider);
  auto r = run_command(replay({"--requests", "40", "--provider", provider, "--sabotage", kind, "--timeout-s",
                               kind == "drop-room-done" ? "3" : "30"}));
  CHECK_MESSAGE(r.status == 5, r.out, r.err);
  check_contains(r.err, "found: ");
  check_contains(r.err, "failed, seed 1");
  return r.err;
}

pid_t pid_of(const std::string& out, const std::string& role) {
  const auto at = out.find(role);
  const auto pid = out.find("pid ", at);
  REQUIRE(pid != out.npos);
  return std::atoi(out.c_str() + pid + 4);
}

/// A replay that would go on for long, with its three processes running.
struct long_replay {
  command_process router{replay({"--requests", "200000", "--provider", "tcp"})};
  pid_t bootstrap = 0, prefill = 0, decode = 0;
  long_replay() {
    REQUIRE_MESSAGE(router.wait_for("others follow"), router.out, router.err);
    bootstrap = pid_of(router.out, "bootstrap");
    prefill = pid_of(router.out, "prefill");
    decode = pid_of(router.out, "decode");
  }
  bool all_gone() const { return is_gone(bootstrap) && is_gone(prefill) && is_gone(decode); }
};

}  // namespace

TEST_CASE("a sabotage that never took place fails the replay, because nothing was shown") {
  for (const std::string kind : {"flip-byte", "swap-rooms", "drop-room-done"}) {
    CAPTURE(kind);
    const auto r = run_command(replay({"--requests", "1", "--provider", "tcp", "--sabotage", kind}));
    CHECK_MESSAGE(r.status == 5, r.out, r.err);
    check_contains(r.err, "sabotage " + kind + " left no trace");
  }
}

TEST_CASE("a replay of the built-in workload is clean on every provider, and its JSON says what was done") {
  for (const std::string provider : {"tcp", "shm", "auto"}) {
    CAPTURE(provider);
    const auto file =
        std::filesystem::temp_directory_path() / fmt::format("handoff-replay-{}.json", getpid());
    const auto r = run_command(replay({"--requests", "40", "--provider", provider, "--json", file.string()}));
    CHECK_MESSAGE(r.status == 0, r.out, r.err);
    CHECK(r.err.empty());
    check_contains(r.out, "40 of 40 succeeded");
    check_contains(r.out, "wrong bytes           0");
    check_contains(r.out, "leaks                 0");
    if (provider != "auto") check_contains(r.out, " over " + provider);
    const auto j = nlohmann::json::parse(std::ifstream(file));
    std::filesystem::remove(file);
    CHECK(j["clean"] == true);
    CHECK(j["requests"] == 40);
    CHECK(j["bytes_verified"] == j["tokens"].get<std::uint64_t>() * 23'040);
    CHECK(j["bytes_written"].get<std::uint64_t>() >= j["bytes_verified"].get<std::uint64_t>());
    CHECK(j["writes_per_request"].get<double>() >= 60);
    CHECK(j["error"] == "");
  }
}

TEST_CASE("a replay of a trace is clean: latent buffers, one request at once") {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("handoff-trace-{}.csv", getpid());
  std::ofstream(file) << "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                         "2023-11-16 18:17:03.9799600,4808,10\n"
                         "2023-11-16 18:17:04.0319600,1,8\n"
                         "2023-11-16 18:17:04.0785600,4096,27\n";
  const auto r = run_command({"replay", "--trace", file.string(), "--model", "deepseek-v3", "--token-scale",
                              "1/64", "--concurrency", "1", "--provider", "tcp"});
  std::filesystem::remove(file);
  CHECK_MESSAGE(r.status == 0, r.out, r.err);
  check_contains(r.out, "3 of 3 succeeded");
  check_contains(r.out, "140 in 4 pages");
}

TEST_CASE("flip-byte is seen: one byte, with its place and both values") {
  for (const std::string provider : {"tcp", "shm"}) {
    const auto text = found_by("flip-byte", provider);
    check_contains(text, "layer 0 key page ");
    check_contains(text, "1 byte(s) differ, bytes of no known page");
  }
}

TEST_CASE("skip-page is seen: the poison of a page that was never written") {
  const auto text = found_by("skip-page", "tcp");
  check_contains(text, " layer ");
  check_contains(text, "poison: never written");
}

TEST_CASE("stale-page is seen: bytes of before, not of the room") {
  check_contains(found_by("stale-page", "tcp"), "stale: bytes ");
}

TEST_CASE("swap-rooms is seen: each room shows the other's bytes") {
  const auto text = found_by("swap-rooms", "shm");
  const auto first = text.find("bytes of room ");
  REQUIRE(first != text.npos);
  CHECK(text.find("bytes of room ", first + 1) != text.npos);
}

TEST_CASE("leak-lease is seen by the runtime's counts and by the pool's owners") {
  const auto text = found_by("leak-lease", "tcp");
  check_contains(text, "leak: decode: slots_used is 1 at the end, 0 expected");
  check_contains(text, "leak: decode: room ");
  check_contains(text, " still holds ");
}

TEST_CASE("drop-room-done is seen: the room ends by its bound on both sides") {
  const auto text = found_by("drop-room-done", "tcp");
  check_contains(text, "failed; decode says timed_out");
  check_contains(text, "prefill says timed_out");
}

TEST_CASE("a worker that is killed ends the replay with its name, and no process stays behind") {
  for (const bool source : {true, false}) {
    long_replay r;
    const auto victim = source ? r.prefill : r.decode;
    kill(victim, SIGKILL);
    CHECK(r.router.finish(std::chrono::seconds(30)) == 3);
    check_contains(r.router.err, fmt::format("the {} process (pid {}) ended: killed by signal 9",
                                             source ? "prefill" : "decode", victim));
    check_contains(r.router.err, "were under way");
    CHECK(r.all_gone());
  }
}

TEST_CASE("a worker that gets SIGTERM drains: rooms that come too late fail alike, none is lost") {
  long_replay r;
  kill(r.prefill, SIGTERM);
  const int status = r.router.finish(std::chrono::seconds(40));
  CHECK_MESSAGE((status == 1 || status == 3),
                r.router.err);  // 20 failed rooms, or the worker was gone before
  CHECK(r.router.err.find("timed_out") == r.router.err.npos);
  for (auto at = r.router.err.find("decode says "); at != r.router.err.npos;
       at = r.router.err.find("decode says ", at + 1))
    CHECK_MESSAGE((r.router.err.compare(at, 26, "decode says peer_draining:") == 0 ||
                   r.router.err.compare(at, 22, "decode says peer_gone:") == 0),  // it had drained and ended
                  r.router.err.substr(at, 200));
  CHECK(r.all_gone());
}

TEST_CASE("a worker that is stopped while it starts ends the replay by --silence-s, by its name") {
  command_process router(replay({"--requests", "200000", "--provider", "tcp", "--silence-s", "2"}));
  REQUIRE(router.wait_for("bootstrap ready"));
  const auto bootstrap = pid_of(router.out, "bootstrap");
  kill(bootstrap, SIGSTOP);
  CHECK(router.finish(std::chrono::seconds(40)) == 3);
  check_contains(router.err, fmt::format("the bootstrap process (pid {}) has not answered", bootstrap));
  check_contains(router.err, "(--silence-s)");
  CHECK(is_gone(bootstrap));
}

TEST_CASE("a worker that stands still ends the replay in bounded time") {
  long_replay r;
  kill(r.prefill, SIGSTOP);
  CHECK(r.router.finish(std::chrono::seconds(40)) == 3);
  check_contains(r.router.err, fmt::format("the prefill process (pid {}) has not answered", r.prefill));
  CHECK(r.all_gone());
}

TEST_CASE("an interrupted replay ends its processes and still prints its table") {
  long_replay r;
  kill(r.router.pid(), SIGINT);
  CHECK(r.router.finish(std::chrono::seconds(30)) == 1);
  check_contains(r.router.err, "interrupted");
  check_contains(r.router.out, "of 200000 succeeded");
  CHECK(r.all_gone());
}

TEST_CASE("when the router is killed, its workers die too") {
  long_replay r;
  kill(r.router.pid(), SIGKILL);
  CHECK(r.router.finish() == 128 + SIGKILL);
  CHECK(r.all_gone());
}
