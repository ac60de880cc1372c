// What is the fabric's own, beside the contract: files in /dev/shm, signal handlers, the lock in shared
// memory, what is offered.
#include "tests/transport/contract/rig.hpp"
#include "transport/fabric/endpoint.hpp"
#include "transport/fabric/fabric_transport.hpp"
#include "transport/fabric/shm_files.hpp"
#include "transport/fabric/watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::fabric;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// Files of one incarnation in /dev/shm.
std::size_t files_of(incarnation_id incarnation) {
  const auto text = shm_files::make(incarnation)->next_name({0}, {0}).substr(0, 24);
  const auto begins = [&](const auto& entry) { return entry.path().filename().string().starts_with(text); };
  return static_cast<std::size_t>(
      std::count_if(fs::directory_iterator("/dev/shm"), fs::directory_iterator(), begins));
}

}  // namespace

// Catches: cleaners that go by names alone, or by pids.
TEST_CASE("files without a living owner are removed, those of the living and of others stay") {
  const incarnation_id mine{random_bits()};
  auto living = shm_files::make(mine);
  REQUIRE(living);
  const auto kept = "/dev/shm/" + living->next_name({1}, {1});
  const auto orphan = "/dev/shm/handoff-" + std::string(16, 'd') + "-" + std::string(8, '0') + "-1-1-0";
  const auto foreign = "/dev/shm/handoff-but-not-ours";
  for (const auto& path : {kept, orphan, std::string(foreign)}) std::ofstream(path) << "x";
  CHECK(shm_files::remove_stale() >= 1);
  CHECK(fs::exists(kept));
  CHECK_FALSE(fs::exists(orphan));
  CHECK(fs::exists(foreign));
  unlink(kept.c_str());
  unlink(foreign);
}

// Catches: a peer's text that becomes a path.
TEST_CASE("only names that handoff makes are taken from peers") {
  const auto good = shm_files::make({7})->next_name({1}, {2});
  CHECK(shm_files::is_name(good));
  const std::vector<std::string> all_bad = {"",
                                            good.substr(0, 33),
                                            "/" + good,
                                            good + "/../x",
                                            good + "x",
                                            "handoff-../../../etc/passwd-1-1-1",
                                            good + std::string(200, '1')};
  for (const auto& bad : all_bad) CHECK_FALSE(shm_files::is_name(bad));
}

// Catches: a library that takes the process's signals.
TEST_CASE("an shm endpoint comes and goes without a trace: no signal handler, no file") {
  struct sigaction before {
  }, after{};
  sigaction(SIGINT, nullptr, &before);
  contract::recorder events;
  settings limits;
  limits.incarnation = {random_bits()};
  auto t = make_fabric_transport(limits, events, {"shm"});
  REQUIRE(t->open_peer({1}, {1}, "shm"));
  sigaction(SIGINT, nullptr, &after);
  CHECK((after.sa_handler == before.sa_handler));
  CHECK(files_of(limits.incarnation) == 2);
  t->close();
  CHECK(files_of(limits.incarnation) == 0);
}

// Catches: an engine thread that hangs for ever in a lock whose holder does not run.
TEST_CASE("the watchdog frees a thread that spins in an endpoint's lock, and marks the endpoint") {
  auto p = open_provider("shm", "");
  REQUIRE(p);
  auto files = shm_files::make({random_bits()});
  REQUIRE(files);
  auto e = endpoint::make(*p, files->next_name({1}, {1}));
  REQUIRE(e);
  const auto path = "/dev/shm/" + (*e)->shm_name();
  if (!shm_lock((*e)->shm_name()).guarded()) {
    MESSAGE("this libfabric has no such lock");
    return;
  }
  const int fd = open(path.c_str(), O_RDWR);
  auto* page = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
  std::atomic_ref<int> lock(*reinterpret_cast<int*>(page + 24));
  const int free = lock.exchange(0x7eadbeef);  // as if taken; a spin loop waits until it looks free again
  CHECK_FALSE((*e)->approachable());
  watchdog dog;
  std::thread stuck([&] {
    dog.watch_this_thread();
    watchdog::step inside(dog, **e);
    while (lock != free) {
    }
  });
  stuck.join();
  CHECK((*e)->broken());
  CHECK_FALSE((*e)->approachable());
  munmap(page, 4096);
}

// Catches: addresses that nobody can connect to, and a choice that cannot be explained.
TEST_CASE("what is offered, and why not, is told") {
  contract::recorder events;
  settings limits;
  limits.bind_address = "0.0.0.0";
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) { lines.push_back(line); };
  CHECK(make_fabric_transport(limits, events, {"tcp", "sockets"}, log)->providers().empty());
  CHECK(std::ranges::any_of(lines, [](const auto& l) { return l.find("wildcard") != std::string::npos; }));
  limits.bind_address = "::1";
  auto six = make_fabric_transport(limits, events, {"tcp"}, log);
  if (six->providers().empty()) {
    MESSAGE("this machine has no IPv6");
    return;
  }
  auto record = six->open_peer({1}, {1}, "tcp");
  REQUIRE(record);
  CHECK(record->address.size() == 28);  // sockaddr_in6
}
