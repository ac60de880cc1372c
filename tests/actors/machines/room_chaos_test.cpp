// Thousands of rooms in all weathers: each ends on both sides, alike, with nothing left and nothing wrong.
#include "tests/actors/machines/chaos_world.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

struct climate {
  const char* name;
  weather w;
};

constexpr climate climates[] = {
    {"fair", {}},
    {"duplicates and reordering", {.duplicate = 30, .reorder = 30, .stale = 50}},
    {"aborts", {.duplicate = 10, .abort = 40, .stale = 20}},
    {"absent engines", {.absent = 20}},
    {"failing writes", {.duplicate = 10, .write_error = 15, .write_stuck = 10, .abort = 10}},
    {"lossy", {.lose = 10, .duplicate = 10, .reorder = 10, .write_error = 3, .abort = 10}},
    {"breaking sessions", {.duplicate = 10, .write_stuck = 20, .session_loss = 60, .abort = 10}},
    {"everything",
     {.lose = 5,
      .duplicate = 20,
      .reorder = 20,
      .write_error = 5,
      .write_stuck = 5,
      .session_loss = 15,
      .abort = 15,
      .absent = 5,
      .stale = 20}},
};

const char* text(kv_poll p) {
  return p == kv_poll::success ? "success" : "failed";
}

// Both ends the same? Where no frame was lost they must be, but for two sides that gave up at the same time.
std::string compare(const chaos_world& world, tally& ends) {
  const auto &source = world.source_end(), &sink = world.sink_end();
  if (!source.known || !source.verdict || !sink.verdict) {
    ++ends["one side only"];
    return {};
  }
  if (*source.verdict == kv_poll::success && *sink.verdict != kv_poll::success)
    return "the source succeeded, the sink did not";
  if (*source.verdict != *sink.verdict) {
    ++ends[fmt::format("source {}, sink {} (frames were lost)", text(*source.verdict), text(*sink.verdict))];
    return world.broken() ? "" : "the sides ended differently though no frame was lost";
  }
  if (*source.verdict == kv_poll::success) {
    ++ends["both success"];
  } else if (source.reason == sink.reason) {
    ++ends["both failed, same reason"];
  } else if (source.reason.origin.rfind("prefill", 0) == 0 && sink.reason.origin.rfind("decode", 0) == 0) {
    ++ends[fmt::format("both failed, each by itself{}{}",
                       source.reason.code == sink.reason.code ? ", same code" : "",
                       world.broken() ? " (frames were lost)" : "")];
  } else if (world.broken() && source.reason.code == errc::peer_gone) {
    ++ends["both failed, the sink's word was lost with its session"];
  } else {
    return fmt::format("reasons differ: {} and {}", to_string(source.reason), to_string(sink.reason));
  }
  return {};
}

}  // namespace

TEST_CASE("rooms end alike on both sides in all weathers") {
  constexpr std::uint64_t first_seed = 1, rooms_per_climate = 600;
  tally counts, ends;
  std::uint64_t rooms = 0, bad = 0;
  for (const auto& c : climates)
    for (auto seed = first_seed; seed < first_seed + rooms_per_climate && bad < 5; ++seed, ++rooms) {
      chaos_world world(seed, c.w, counts);
      world.run();
      world.check_end();
      auto difference = compare(world, ends);
      INFO(std::string(c.name), ", seed ", seed);
      for (const auto& v : world.violations()) FAIL_CHECK(v);
      CHECK(difference == "");
      if (std::string(c.name) == "fair") CHECK(world.source_end().verdict == kv_poll::success);
      bad += !world.violations().empty() || !difference.empty();
    }
  std::string report;
  for (const auto* list : {&ends, &counts})
    for (const auto& [what, times] : *list) report += fmt::format("\n  {:>8} {}", times, what);
  MESSAGE(rooms, " rooms, seeds from ", first_seed, " in each of ", std::size(climates),
          " climates:", report);
  CHECK(ends["both success"] > 1000);
  CHECK(ends["both failed, same reason"] > 500);
  CHECK(counts["fence by the sink"] > 10);
  CHECK(counts["fence by the source"] > 10);
  CHECK(counts["tokens proven in a failed room"] > 100);
}

}  // namespace handoff::testing
