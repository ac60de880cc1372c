// Failures on purpose: as often as asked, the same for the same seed, and never where a verdict is final.
#include "actors/room/failure_injector.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff::testing {
namespace {

std::string pattern(failure_injector& injector, failure_kind kind, int draws) {
  std::string text;
  for (int i = 0; i < draws; ++i) text += injector.draw(kind, "room") ? '1' : '0';
  return text;
}

}  // namespace

TEST_CASE("an injector fails as often as asked, and the same for the same seed and place") {
  const failure_probabilities all{0.05, 0.05, 0.05, 0.05, 0.05};
  failure_injector a(all, 7, "prefill-0 source"), again(all, 7, "prefill-0 source"),
      elsewhere(all, 7, "prefill-1 source"), other_seed(all, 8, "prefill-0 source");
  constexpr int draws = 20'000;
  const auto first = pattern(a, failure_kind::post, draws);
  CHECK(first == pattern(again, failure_kind::post, draws));
  CHECK(first != pattern(elsewhere, failure_kind::post, draws));
  CHECK(first != pattern(other_seed, failure_kind::post, draws));
  CHECK(first != pattern(a, failure_kind::frame, draws));
  CHECK(a.count(failure_kind::post) > draws * 0.045);
  CHECK(a.count(failure_kind::post) < draws * 0.055);
  CHECK(a.count(failure_kind::commit) == 0);
}

TEST_CASE("other kinds do not shift a kind's sequence") {
  const failure_probabilities all{0.5, 0.5, 0.5, 0.5, 0.5};
  failure_injector alone(all, 3, "x"), mixed(all, 3, "x");
  for (int i = 0; i < 1000; ++i) {
    (void)mixed.draw(failure_kind::frame, "y");
    CHECK(bool(alone.draw(failure_kind::poll, "y")) == bool(mixed.draw(failure_kind::poll, "y")));
  }
}

TEST_CASE("probability 0 never fails, 1 always does, and the error names kind, number and room") {
  failure_injector none, always({0, 0, 0, 1, 0}, 1, "x");
  CHECK_FALSE(none.draw(failure_kind::frame, "room 5/1"));
  CHECK_FALSE(always.draw(failure_kind::poll, "room 5/1"));
  (void)always.draw(failure_kind::frame, "room 4/1");
  const auto e = always.draw(failure_kind::frame, "room 5/1");
  CHECK(e.code == errc::injected);
  CHECK(e.detail == "frame failure no. 2 on purpose, room 5/1");
  status_part part;
  none.count_into(part);
  CHECK(part.counts.empty());
  always.count_into(part);
  REQUIRE(part.counts.size() == 1);
  CHECK(part.counts[0] == std::pair<std::string, std::uint64_t>("injected_frame", 2));
}

TEST_CASE("a drawn verdict is taken back, a final one stands") {
  failure_injector always({1, 0, 0, 0, 0}, 1, "x");
  room_effects effects;
  effects.emplace_back(verdict_effect{kv_poll::waiting_for_input, {}, {}});
  effects.emplace_back(lease_effect{lease_state::exposed});
  const auto e = draw_poll(always, {{5}, {1}}, effects);
  CHECK(e.code == errc::injected);
  REQUIRE(effects.size() == 1);
  CHECK(std::holds_alternative<lease_effect>(effects[0]));
  CHECK_FALSE(draw_poll(always, {{5}, {1}}, effects));
  for (auto last : {kv_poll::success, kv_poll::failed}) {
    effects.assign(1, verdict_effect{last, {}, {}});
    CHECK_FALSE(draw_poll(always, {{5}, {1}}, effects));
    CHECK(effects.size() == 1);
  }
}

}  // namespace handoff::testing
