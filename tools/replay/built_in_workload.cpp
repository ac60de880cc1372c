#include "tools/replay/trace.hpp"

#include <array>
#include <random>

namespace handoff::replay {
namespace {

struct quantile_point {
  double share;
  double tokens;
};

/// Input lengths of Mooncake's conversation trace (kvcache-ai/Mooncake, FAST'25 release, Apache-2.0): 12,031
/// requests, mean 12,035.
constexpr std::array<quantile_point, 24> quantiles{
    {{0.00, 891},   {0.05, 901},   {0.10, 964},    {0.15, 1261},  {0.20, 1662},    {0.25, 2306},
     {0.30, 3263},  {0.35, 4250},  {0.40, 4993},   {0.45, 5870},  {0.50, 6909},    {0.55, 8187},
     {0.60, 9570},  {0.65, 11239}, {0.70, 13196},  {0.75, 15368}, {0.80, 17869},   {0.85, 21467},
     {0.90, 27367}, {0.95, 39552}, {0.975, 59009}, {0.99, 85401}, {0.995, 100886}, {1.00, 126195}}};

/// Means of the same trace.
constexpr std::uint64_t output_tokens = 343, milliseconds_between = 300;

std::uint64_t length_at(double share) {
  std::size_t i = 1;
  while (i + 1 < quantiles.size() && quantiles[i].share < share) ++i;
  const auto &low = quantiles[i - 1], &high = quantiles[i];
  const auto part = (share - low.share) / (high.share - low.share);
  return static_cast<std::uint64_t>(low.tokens + part * (high.tokens - low.tokens));
}

}  // namespace

std::vector<request> built_in_workload(std::uint64_t requests, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<request> result(requests);
  for (std::uint64_t i = 0; i < requests; ++i) {
    // The generator's upper 53 bits as a number in [0, 1): the same with every standard library.
    const auto share = static_cast<double>(random() >> 11) * 0x1p-53;
    result[i] = {i * milliseconds_between, length_at(share), output_tokens, {}};
  }
  return result;
}

}  // namespace handoff::replay
