// Failures injected on purpose, at random and of each kind: every room ends, both sides give the same reason,
// and after each cycle everything is back.
#include "tests/processes/cluster.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff::test {
namespace {

using namespace replay;

constexpr std::uint64_t seed = 20260302;
constexpr int cycles = 3;
constexpr double probability = 0.05;
constexpr std::size_t in_flight = 3;
/// A lost session is noticed soon; an offer waits long enough for the sink's word about it.
constexpr worker_bounds quick_bounds{50, 250, 500, 2000, 300, 2000, 10'000};

std::string text_of(const resource_counts& c) {
  return fmt::format("{} descriptors, {} registrations, {} peers, {} actors, {} maps", c.descriptors,
                     c.registrations, c.peers, c.actors, c.maps);
}

/// The last word between two sides may be lost with their session; then the one that did not hear it says so.
bool lost_session(const std::string& failure) {
  return failure == "peer_gone";
}

struct comparison {
  std::size_t succeeded = 0, failed_alike = 0, peer_gone_alone = 0;
  std::map<std::string, std::size_t> reasons;
  std::string different, apart;

  void add(const room_record& r) {
    const auto &source = r.at_source->outcome, &sink = r.at_sink->outcome;
    if (!sink.failure.empty()) ++reasons[sink.failure];
    if (source.failure == sink.failure)
      ++(source.failure.empty() ? succeeded : failed_alike);
    else if (lost_session(source.failure) || lost_session(sink.failure))
      ++peer_gone_alone, apart += fmt::format("room {}: source {} {}; sink {} {}\n", r.room, source.failure,
                                              source.reason, sink.failure, sink.reason);
    else
      different += fmt::format("room {}: source {} {}; sink {} {}\n", r.room, source.failure, source.reason,
                               sink.failure, sink.reason);
  }
};

void run_cycles(const std::string& provider) {
  const std::size_t rooms = std::getenv("HANDOFF_TEST_FULL") ? 500 : 20;
  worker_faults faults;
  faults.failure_probability.fill(probability);
  cluster c(provider, {"prefill-1", "decode-1"}, seed, faults, quick_bounds);
  MESSAGE(provider, ", seed ", seed, ": ", cycles, " cycles of ", rooms, " rooms, probability ", probability);
  // A lock file for each process, and an endpoint for each of the two.
  const std::size_t shm_names = provider == "shm" ? 4 : 0;
  const auto settle = [&](const std::string& when) {
    std::map<std::string, worker_summary> summaries;
    std::size_t names = 0;
    // The last room's session may end with it, a little later: counts are those of a connected pair.
    for (int tries = 0; tries < 10; ++tries) {
      c.warm("prefill-1", "decode-1");
      c.quiet();
      for (const std::string name : {"prefill-1", "decode-1"}) {
        c.group.remember_shm(name);
        summaries[name] = c.settle(name);
      }
      names = c.group.shm_names().size();
      if (summaries["prefill-1"].counts.peers == 1 && summaries["decode-1"].counts.peers == 1 &&
          names == shm_names)
        break;
    }
    for (const auto& summary : summaries) {
      const auto& name = summary.first;
      const auto& s = summary.second;
      MESSAGE(fmt::format("{} {}: {}", when, name, text_of(s.counts)));
      for (const auto& text : s.leaks) CHECK_MESSAGE(false, name, " leaks: ", text);
      for (const auto& text : s.findings) CHECK_MESSAGE(false, name, " found: ", text);
    }
    MESSAGE(fmt::format("{} both: {} names in /dev/shm", when, names));
    CHECK(names == shm_names);
  };
  settle("before");
  for (int cycle = 1; cycle <= cycles; ++cycle) {
    c.rooms.clear();
    const auto first = c.next_room();
    std::vector<std::uint64_t> flying;
    REQUIRE(c.run(
        [&] {
          std::erase_if(flying, [&](auto id) { return c.rooms[id].over(); });
          // A sink tells a source what it missed when a next room connects them again.
          const bool missed = !flying.empty() && std::all_of(flying.begin(), flying.end(), [&](auto id) {
            const auto& r = c.rooms[id];
            return (r.at_source || r.at_sink) && now_ns() - r.started_ns > 500'000'000;
          });
          if (missed) flying.push_back(c.start_room("prefill-1", "decode-1"));
          while (flying.size() < in_flight && c.next_room() - first < rooms)
            flying.push_back(c.start_room("prefill-1", "decode-1"));
          return flying.empty();
        },
        milliseconds(500'000)));
    comparison all;
    for (const auto& [id, r] : c.rooms) all.add(r);
    std::string reasons;
    for (const auto& [reason, count] : all.reasons) reasons += fmt::format(", {} {}", count, reason);
    MESSAGE("cycle ", cycle, ": ", c.rooms.size(), " rooms, ", all.succeeded, " succeeded, ",
            all.failed_alike, " failed alike, ", all.peer_gone_alone, " ended where one side lost its peer",
            reasons);
    if (!all.apart.empty()) MESSAGE(all.apart);
    CHECK_MESSAGE(all.different.empty(), all.different);
    if (rooms == 500) CHECK(all.succeeded > 0);
    settle("after ");
  }
  std::array<std::uint64_t, failure_kind_count> injected{};
  for (const auto* name : {"prefill-1", "decode-1"})
    for (std::size_t i = 0; i < failure_kind_count; ++i)
      injected[i] += c.group[name].summaries.back().injected[i];
  for (std::size_t i = 0; i < failure_kind_count; ++i) {
    MESSAGE("injected ", failure_kind_names[i], ": ", injected[i]);
    if (rooms == 500) CHECK(injected[i] > 0);
  }
  for (const auto* name : {"prefill-1", "decode-1", "bootstrap"}) c.end(name);
  CHECK(c.group.shm_names().empty());
}

}  // namespace

TEST_CASE("tcp: cycles of rooms with injected failures end alike on both sides and leave nothing") {
  run_cycles("tcp");
}

TEST_CASE("shm: cycles of rooms with injected failures end alike on both sides and leave nothing") {
  run_cycles("shm");
}

}  // namespace handoff::test
