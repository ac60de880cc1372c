// `handoff drain` and SIGTERM against engines of this process and of their own.
#include "tests/actors/engine_fixture.hpp"
#include "tests/tools/command_process.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace handoff;
using namespace handoff::test;

namespace {

void check_contains(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != text.npos, part, " is not in:\n", text);
}

}  // namespace

TEST_CASE("drain says drained, rooms left, refused and unreachable with an exit status each") {
  engine registry("registry", engine_role::bootstrap, "", "tcp");
  const auto where = registry.rt->endpoint();
  engine prefill("prefill-0", engine_role::prefill, where, "tcp");
  const std::vector<page_id> list{{3}};
  const page_span span{{0}, 0, list, 0};
  REQUIRE(!prefill.rt->offer({1}, std::span(&span, 1), 4, std::chrono::seconds(60), ""));

  auto r = run_command({"drain", prefill.rt->control_address(), "--deadline-ms", "100"});
  CHECK(r.status == 5);
  check_contains(r.err,
                 "engine prefill-0 dp0 pp0 cp0 tp0 still has 1 rooms after 100 ms; it takes no new ones");
  REQUIRE(!prefill.rt->offer({2}, std::span(&span, 1), 4, std::chrono::seconds(60), ""));
  const auto refused = prefill.wait_poll({2}, kv_poll::failed);
  REQUIRE(refused);
  CHECK(refused->code == errc::peer_draining);

  REQUIRE(!prefill.rt->abort({1}, "done"));
  r = run_command({"drain", prefill.rt->control_address()});
  CHECK_MESSAGE(r.status == 0, r.err);
  check_contains(r.out, "engine prefill-0 dp0 pp0 cp0 tp0 is drained");

  r = run_command({"drain", where});
  CHECK(r.status == 3);
  check_contains(r.err, "engine registry does not serve drain_request here");
  const auto address = prefill.rt->control_address();
  prefill.rt->close();
  r = run_command({"drain", address});
  CHECK(r.status == 3);
  check_contains(r.err, "peer_unknown: cannot reach " + address);
}

TEST_CASE("SIGTERM drains a rank, which leaves the registry and ends with status 0") {
  engine registry("registry", engine_role::bootstrap, "", "tcp");
  const auto file = std::filesystem::temp_directory_path() / ("handoff-drain-" + std::to_string(getpid()));
  std::ofstream(file)
      << R"({"engine": {"name": "prefill-0"}, "model": {"name": "smollm2-135m"}, "bootstrap": {"address": ")"
      << registry.rt->endpoint() << R"("}})";
  command_process prefill({"run", file.string(), "--role", "prefill", "--pages", "8"});
  REQUIRE(prefill.wait_for("serves"));
  std::filesystem::remove(file);
  REQUIRE(registry.wait_log("rank-registered: prefill prefill-0"));  // before that there is nothing to leave
  kill(prefill.pid(), SIGTERM);
  const int status = prefill.finish();
  CHECK_MESSAGE(status == 0, prefill.err);
  check_contains(prefill.err, "drained: engine prefill-0 dp0 pp0 cp0 tp0 has no room left");
  CHECK(registry.wait_log("rank-left: prefill prefill-0"));
}
