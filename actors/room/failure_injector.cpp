#include "actors/room/failure_injector.hpp"

#include <fmt/format.h>

namespace handoff {
namespace {

/// splitmix64: the next number of a sequence.
std::uint64_t next(std::uint64_t& state) {
  auto z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// [0, 1)
double fraction(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) / static_cast<double>(1ULL << 53);
}

}  // namespace

failure_injector::failure_injector(const failure_probabilities& probabilities, std::uint64_t seed,
                                   std::string_view stream)
    : probabilities_(probabilities) {
  for (auto c : stream) seed = next(seed) ^ static_cast<unsigned char>(c);
  for (auto& state : states_) state = next(seed);
}

error failure_injector::draw(failure_kind kind, std::string_view what) {
  const auto i = static_cast<std::size_t>(kind);
  if (probabilities_[i] <= 0 || fraction(next(states_[i])) >= probabilities_[i]) return {};
  ++counts_[i];
  return {
      errc::injected, fmt::format("{} failure no. {} on purpose, {}", to_string(kind), counts_[i], what), {}};
}

error draw_poll(failure_injector& failures, room_key key, room_effects& effects) {
  for (auto i = effects.begin(); i != effects.end(); ++i) {
    const auto* verdict = std::get_if<verdict_effect>(&*i);
    if (!verdict || is_terminal(verdict->poll)) continue;
    auto failed = failures.draw(failure_kind::poll, to_string(key));
    if (failed) effects.erase(i);
    return failed;
  }
  return {};
}

void failure_injector::count_into(status_part& part) const {
  for (std::size_t i = 0; i < failure_kind_count; ++i)
    if (probabilities_[i] > 0)
      part.counts.emplace_back(fmt::format("injected_{}", failure_kind_names[i]), counts_[i]);
}

}  // namespace handoff
