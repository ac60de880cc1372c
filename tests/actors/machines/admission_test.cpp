// Admission of control connections: limits, rates, and what a flood cannot do.
#include "actors/control/admission_machine.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::control;

namespace {

using std::chrono::milliseconds;

const time_point start{std::chrono::hours(1)};

bool refused(const admission_machine::verdict& v, const std::string& fragment) {
  return v.refusal.code == errc::limit_exceeded && v.refusal.detail.find(fragment) != std::string::npos &&
         !v.evicted;
}

}  // namespace

TEST_CASE("a bucket gives its burst at once and then its rate, and refusals cost nothing") {
  token_bucket bucket;
  const rate_limit limit{10, 3};
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(limit, start));
  for (int i = 0; i < 100; ++i) CHECK_FALSE(bucket.take(limit, start + milliseconds(99)));
  CHECK(bucket.take(limit, start + milliseconds(100)));
  CHECK_FALSE(bucket.take(limit, start + milliseconds(100)));
  auto later = start + std::chrono::hours(1);  // no more than the burst is saved up
  for (int i = 0; i < 3; ++i) CHECK(bucket.take(limit, later));
  CHECK_FALSE(bucket.take(limit, later));
}

TEST_CASE("lines beyond the rate are held back and counted by the next one") {
  line_limiter lines({1, 2});
  CHECK(lines.say(start) == 0);
  CHECK(lines.say(start) == 0);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(lines.say(start).has_value());
  CHECK(lines.say(start + std::chrono::seconds(1)) == 1000);
  CHECK(lines.say(start + std::chrono::seconds(2)) == 0);
}

TEST_CASE("one unauthenticated connection too many ends the oldest of them") {
  admission_machine m({8, 2, {100, 100}});
  CHECK_FALSE(m.arrived(1, "a", start).evicted);
  CHECK_FALSE(m.arrived(2, "a", start).evicted);
  CHECK(m.arrived(3, "a", start).evicted == 1);
  m.authenticated(2);  // no longer among them
  CHECK_FALSE(m.arrived(4, "a", start).evicted);
  CHECK(m.arrived(5, "a", start).evicted == 3);
  m.authenticated(3);  // it ended: its hello came too late
  CHECK(m.connections() == 3);
  m.ended(4);
  m.ended(4);
  m.ended(77);
  CHECK_FALSE(m.arrived(6, "a", start).evicted);
}

TEST_CASE("at the limit of all connections unauthenticated ones make room, authenticated ones never") {
  admission_machine m({3, 2, {100, 100}});
  for (std::uint64_t id : {1, 2, 3}) {
    m.arrived(id, "a", start);
    if (id < 3) m.authenticated(id);
  }
  CHECK(m.arrived(4, "a", start).evicted == 3);
  m.authenticated(4);
  CHECK(refused(m.arrived(5, "a", start), "limits.control_connections = 3"));
  m.ended(1);
  CHECK_FALSE(m.arrived(6, "a", start).refusal);
}

TEST_CASE("a source beyond its rate is refused, others are not") {
  admission_machine m({100, 50, {10, 5}});
  std::uint64_t id = 1;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(m.arrived(id++, "flood", start).refusal);
  for (int i = 0; i < 1000; ++i)
    CHECK(refused(m.arrived(id++, "flood", start), "flood opens more than limits.control_rate = 10"));
  CHECK_FALSE(m.arrived(id++, "peer", start).refusal);
  CHECK_FALSE(m.arrived(id++, "flood", start + milliseconds(100)).refusal);
  CHECK(m.arrived(id++, "flood", start + milliseconds(100)).refusal);
}

TEST_CASE("the sources that are remembered are bounded, and the ones that flood are forgotten last") {
  admission_machine m({100, 50, {10, 5}, 4});
  std::uint64_t id = 1;
  while (!m.arrived(id++, "flood", start).refusal) {
  }
  for (int i = 0; i < 1000; ++i) {
    m.arrived(id++, "s" + std::to_string(i), start);
    CHECK(m.sources() <= 4);
  }
  CHECK(m.arrived(id++, "flood", start).refusal);
  m.arrived(id++, "later", start + std::chrono::seconds(10));
  CHECK(m.sources() == 1);
}

TEST_CASE("whatever comes in whatever order, every limit holds and nobody known is evicted") {
  const std::uint64_t seed = 20240611;
  MESSAGE("seed ", seed);
  std::mt19937_64 random(seed);
  std::uint64_t evictions = 0, refusals = 0;
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t all = 2 + random() % 20;
    const admission_context context{
        all, 1 + static_cast<std::uint32_t>(random() % (all - 1)), {40, 1 + std::uint32_t(random() % 9)}, 3};
    admission_machine m(context);
    std::set<std::uint64_t> known, unknown;
    std::map<std::string, std::vector<time_point>> admitted;
    auto now = start;
    auto any_of = [&](const std::set<std::uint64_t>& set) {
      return set.empty() ? 0 : *std::next(set.begin(), static_cast<long>(random() % set.size()));
    };
    for (std::uint64_t id = 1; id < 2000; ++id) {
      now += milliseconds(random() % 20);
      switch (random() % 4) {
        case 0:
        case 1: {
          auto source = std::string(1, static_cast<char>('a' + random() % 3));
          auto v = m.arrived(id, source, now);
          refusals += v.refusal ? 1 : 0;
          if (v.evicted) {
            ++evictions;
            REQUIRE(unknown.erase(*v.evicted) == 1);
          }
          if (v.refusal) break;
          unknown.insert(id);
          auto& times = admitted[source];
          times.push_back(now);
          // Any window that ends now holds at most the burst and its share of the rate.
          for (std::size_t i = 0; i < times.size(); ++i) {
            auto ms = std::chrono::duration_cast<milliseconds>(now - times[i]).count();
            REQUIRE(times.size() - i <= context.per_source.burst + static_cast<std::size_t>(ms) * 40 / 1000);
          }
          break;
        }
        case 2:
          if (auto who = any_of(unknown)) {
            m.authenticated(who);
            unknown.erase(who);
            known.insert(who);
          }
          break;
        default:
          if (auto who = any_of(random() % 2 ? known : unknown)) {
            m.ended(who);
            known.erase(who);
            unknown.erase(who);
          }
      }
      REQUIRE(m.unauthenticated() == unknown.size());
      REQUIRE(m.connections() == known.size() + unknown.size());
      REQUIRE(unknown.size() <= context.unauthenticated_max);
      REQUIRE(m.connections() <= context.connections_max);
      REQUIRE(m.sources() <= context.sources_max);
    }
  }
  MESSAGE(evictions, " evictions, ", refusals, " refusals");
  CHECK(evictions > 1000);
  CHECK(refusals > 1000);
}
