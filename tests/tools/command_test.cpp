// The command as a person uses it: help, configuration files, ranks that serve.
#include "tests/tools/command_process.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace handoff::test;

namespace {

/// A file that is gone with the test.
class temporary_file {
 public:
  explicit temporary_file(const std::string& text) {
    static int number = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("handoff-test-" + std::to_string(getpid()) + "-" + std::to_string(number++)))
                .string();
    std::ofstream(path_) << text;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string config_with(const std::string& bootstrap) {
  return R"({"engine": {"name": "test"}, "model": {"name": "smollm2-135m"}, "bootstrap": {)" + bootstrap +
         "}}";
}

void check_contains(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != text.npos, part, " is not in:\n", text);
}

void check_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  const auto r = run_command(arguments);
  CHECK_MESSAGE(r.status == 2, r.err);
  check_contains(r.err, part);
  CHECK(r.out.find("ready") == r.out.npos);
}

}  // namespace

TEST_CASE("help shows examples and exit statuses, the version is told") {
  const auto help = run_command({"--help"});
  CHECK(help.status == 0);
  check_contains(help.out, "Examples:\n  handoff replay");
  check_contains(help.out, "Exit status: 0 fine; 2 bad options");
  CHECK(help.out.find("replay-worker") == help.out.npos);
  for (const std::string name : {"run", "config", "replay", "drain"}) {
    const auto sub = run_command({name, "--help"});
    CHECK(sub.status == 0);
    check_contains(sub.out, "Examples:\n  handoff " + name);
  }
  CHECK(run_command({"--version"}).status == 0);
}

TEST_CASE("bad options end with status 2 before anything is started") {
  check_usage_error({}, "subcommand is required");
  check_usage_error({"fly"}, "subcommand is required");
  check_usage_error({"replay", "--provider", "pigeon"}, "pigeon");
  check_usage_error({"replay", "--requests", "0"}, "--requests");
  check_usage_error({"replay", "--concurrency", "many"}, "many");
  check_usage_error({"replay", "--model", "gpt-0"}, "gpt-0");
  check_usage_error({"replay", "--token-scale", "1/3"}, "power of two");
  check_usage_error({"replay", "--sabotage", "fire"}, "swap-rooms");
  check_usage_error({"replay", "--seed", "99999999999999999999"}, "--seed");
  check_usage_error({"replay", "--json", "/no/such/folder/out.json"},
                    "/no/such/folder: No such file or directory");
  check_usage_error({"replay", "--json", "/"}, "is a directory");
  check_usage_error({"sim", "--share", "nan"}, "--share");
  check_usage_error({"sim", "--faults", ""}, "no fault is named");
  check_usage_error({"drain", "nowhere"}, "'nowhere' is no host:port");
  check_usage_error({"drain", "127.0.0.1:1", "--deadline-ms", "90000000"}, "--deadline-ms");
  check_usage_error({"drain", "127.0.0.1:1", "--token-file", "/no/such/file"}, "/no/such/file");
  check_usage_error({"replay", "--trace", "/no/such/trace"}, "/no/such/trace: No such file or directory");
  check_usage_error({"replay", "--token-scale", "1", "--model", "llama-3.1-70b", "--concurrency", "1024"},
                    "does not fit");
  const temporary_file trace("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9,x,1\n");
  check_usage_error({"replay", "--trace", trace.path()}, trace.path() + ":2: ContextTokens is 'x'");
}

TEST_CASE("config check names every mistake with its pointer, config show prints effective values") {
  const temporary_file good(config_with(""));
  const auto checked = run_command({"config", "check", good.path()});
  CHECK(checked.status == 0);
  check_contains(checked.out, "engine test is configured correctly");
  const auto shown = run_command({"config", "show", good.path()});
  CHECK(shown.status == 0);
  check_contains(shown.out, "\"page_tokens\": 64");
  const temporary_file again(shown.out);
  CHECK(run_command({"config", "check", again.path()}).status == 0);

  const temporary_file bad(R"({"engine": {"name": 3}, "modl": {}, "model": {"name": "x"}})");
  for (const std::string how : {"check", "show"}) {
    check_usage_error({"config", how, bad.path()}, bad.path() + ": /engine/name");
    check_usage_error({"config", how, bad.path()}, "/modl: unknown key");
  }
  const temporary_file not_json("engine:\n  name: x\n");
  check_usage_error({"config", "check", not_json.path()}, not_json.path());
  check_usage_error({"config", "check", "/no/such/file"}, "/no/such/file");
  // What a start would find wrong.
  const temporary_file nowhere(
      R"({"engine": {"name": "x"}, "model": {"name": "x"}, "testing": {"enabled": true, "breakpoint": "sender.foo"}})");
  check_usage_error({"config", "check", nowhere.path()}, "\"sender.foo\" names no state");
  const temporary_file no_token(
      R"({"engine": {"name": "x"}, "model": {"name": "x"}, "security": {"token_file": "/no/such/token"}})");
  check_usage_error({"config", "check", no_token.path()}, "/no/such/token: cannot be read");
}

TEST_CASE("run starts nothing from a bad file, model or rank") {
  const temporary_file bad(R"({"engine": {"name": ""}, "model": {"name": "x"}})");
  check_usage_error({"run", bad.path(), "--role", "bootstrap"}, "/engine/name");
  const temporary_file good(config_with(R"("bind": "127.0.0.1:0")"));
  check_usage_error({"run", good.path()}, "--role");
  check_usage_error({"run", good.path(), "--role", "king"}, "king");
  for (const std::string rank :
       {"1,2", "-1,0,0,0", "65535,0,0,0", "99999999999,0,0,0", "0,0,0, 0", "0,0,0,0x"})
    check_usage_error({"run", good.path(), "--role", "prefill", "--rank=" + rank}, "dp,pp,cp,tp");
  const temporary_file unknown(R"({"engine": {"name": "x"}, "model": {"name": "gpt-0"}})");
  check_usage_error({"run", unknown.path(), "--role", "decode"}, "gpt-0");
}

TEST_CASE("run serves until it is told to end, and says where") {
  const temporary_file registry(config_with(R"("bind": "127.0.0.1:0")"));
  command_process bootstrap({"run", registry.path(), "--role", "bootstrap"});
  REQUIRE(bootstrap.wait_for("\n"));
  check_contains(bootstrap.out, "bootstrap test dp0 pp0 cp0 tp0 serves: control 127.0.0.1:");
  const auto at = bootstrap.out.find("bootstrap 127.0.0.1:");
  REQUIRE(at != std::string::npos);
  const auto address = bootstrap.out.substr(at + 10, bootstrap.out.find('\n') - at - 10);

  const temporary_file rank(config_with("\"address\": \"" + address + "\""));
  for (const std::string role : {"prefill", "decode"}) {
    command_process engine({"run", rank.path(), "--role", role, "--rank", "dp0pp0cp0tp0", "--pages", "8"});
    REQUIRE(engine.wait_for("\n"));
    check_contains(engine.out, role + " test dp0 pp0 cp0 tp0 serves: control 127.0.0.1:");
    check_contains(engine.out, "bootstrap " + address);
    kill(engine.pid(), role == "prefill" ? SIGTERM : SIGINT);
    const int status = engine.finish();
    CHECK_MESSAGE(status == 0, engine.err);
  }
  kill(bootstrap.pid(), SIGTERM);
  const int status = bootstrap.finish();
  CHECK_MESSAGE(status == 0, bootstrap.err);
}

TEST_CASE("a pipe is refused as configuration or trace instead of waited for") {
  const auto pipe =
      (std::filesystem::temp_directory_path() / ("handoff-test-pipe-" + std::to_string(getpid()))).string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  check_usage_error({"config", "check", pipe}, "it is no regular file");
  check_usage_error({"run", pipe, "--role", "bootstrap"}, "it is no regular file");
  check_usage_error({"replay", "--trace", pipe}, "is no regular file");
  std::filesystem::remove(pipe);
}

TEST_CASE("output that cannot be written does not pass for success") {
  for (const std::string arguments : {"--help", "--version", "config --help"}) {
    CAPTURE(arguments);
    const int status =
        std::system(("'" HANDOFF_COMMAND "' " + arguments + " > /dev/full 2> /dev/null").c_str());
    CHECK(WEXITSTATUS(status) == 1);
  }
}

TEST_CASE("an interrupt during start-up is said, and nothing stays behind") {
  command_process replay({"replay", "--requests", "2000", "--model", "smollm2-135m"});
  REQUIRE(replay.wait_for("token scale"));  // before any process is ready
  kill(replay.pid(), SIGINT);
  CHECK(replay.finish() == 1);
  check_contains(replay.err, "interrupted");
}
