// What an idle transport costs, in percent of a core: a process with two connected peers, over
// HANDOFF_IDLE_SECONDS (10), and the same with one of the peers stopped. Runs with `./dev test --full`.
#include "tests/transport/contract/rig.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;
using namespace std::chrono_literals;

namespace {

struct process_times {
  int parent = 0;
  double cpu_seconds = 0;
};

process_times read_times(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  process_times result;
  std::string skipped;
  fields >> skipped >> result.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  result.cpu_seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return result;
}

/// Processor time of the oldest child: endpoint 0, which has the two peers.
double first_childs_cpu_seconds() {
  std::set<int> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && read_times(entry.path()).parent == getpid()) children.insert(pid);
  }
  REQUIRE_FALSE(children.empty());
  return read_times("/proc/" + std::to_string(*children.begin())).cpu_seconds;
}

double percent_over(rig& r, int seconds) {
  const double before = first_childs_cpu_seconds();
  r.wait_for([] { return false; }, std::chrono::seconds(seconds));
  return 100 * (first_childs_cpu_seconds() - before) / seconds;
}

}  // namespace

TEST_CASE("an idle process with two peers costs next to nothing, also when one of them is stopped") {
  const char* wanted = std::getenv("HANDOFF_IDLE_SECONDS");
  const int seconds = wanted != nullptr ? std::atoi(wanted) : 10;
  const auto& info = provider_under_test();
  rig_options options;
  options.endpoints = 3;
  auto r = make_rig(options);
  for (std::uint32_t peer : {1, 2}) {
    auto here = r->at(0).open_peer({peer}, {1}, info.provider);
    auto there = r->at(peer).open_peer({0}, {1}, info.provider);
    REQUIRE(here);
    REQUIRE(there);
    REQUIRE(r->at(0).connect_peer({peer}, *there));
    REQUIRE(r->at(peer).connect_peer({0}, *here));
  }
  REQUIRE(r->wait_for([&] { return r->events(0).all<peer_ready>().size() == 2; }, 5s));
  const double limit = info.provider == "shm" ? 2.0 : 1.0;
  const double both = percent_over(*r, seconds);
  r->freeze(1);
  const double one_stopped = percent_over(*r, seconds);
  r->thaw(1);
  MESSAGE(info.provider << ", " << seconds << " s: " << both << " % of a core, " << one_stopped
                        << " % with one peer stopped");
  CHECK(both < limit);
  CHECK(one_stopped < limit);
}
