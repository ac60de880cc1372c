// What all parts of one simulated world share: the wire with its clock, random numbers, the list of events
// for people, what was found wrong, and the counts.
#pragma once

#include "tools/sim/tally.hpp"
#include "transport/sim/sim_world.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace handoff::sim {

using transport::duration;
using transport::time_point;
using namespace std::chrono_literals;

/// A small generator, cheap to make: each room has its own, so that leaving one out does not change the
/// others.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  dice(std::uint64_t seed, std::uint64_t stream)
      : state_(seed * 0x9e3779b97f4a7c15u ^ stream * 0xd1342543de82ef95u) {
    next();
  }

  std::uint64_t next() {
    auto z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(double p) { return static_cast<double>(next() >> 11) < p * 0x1p53; }
  duration between(duration from, duration to) {
    return from +
           duration(static_cast<duration::rep>(below(static_cast<std::uint64_t>((to - from).count()) + 1)));
  }

 private:
  std::uint64_t state_;
};

struct kernel {
  kernel(std::uint64_t seed, bool traced) : wire(seed), random(seed, 1), traced(traced) {}

  time_point now() const { return wire.now(); }

  /// A line of the event list; made only when somebody wants to read it.
  template <class... Ts>
  void trace(std::string_view who, fmt::format_string<Ts...> text, Ts&&... values) {
    if (traced) line(who, fmt::format(text, std::forward<Ts>(values)...));
  }
  void line(std::string_view who, const std::string& text) {
    const auto us = std::chrono::duration<double, std::micro>(now().time_since_epoch()).count();
    lines.push_back(fmt::format("{:>13.1f} us  {:<12} {}", us, who, text));
  }
  template <class... Ts>
  void violate(std::string_view who, fmt::format_string<Ts...> text, Ts&&... values) {
    auto what = fmt::format(text, std::forward<Ts>(values)...);
    if (traced) line(who, "BROKEN: " + what);
    if (violations.size() < 20) violations.push_back(fmt::format("{}: {}", who, what));
  }
  /// Two runs that agree in this did the same.
  void mix(std::uint64_t x) { digest = (digest ^ x) * 0x100000001b3u; }

  transport::sim_world wire;
  dice random;
  bool traced;
  tally counts;
  std::uint64_t digest = 0xcbf29ce484222325u;
  std::vector<std::string> lines, violations;
};

}  // namespace handoff::sim
