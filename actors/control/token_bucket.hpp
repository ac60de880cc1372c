// A rate with a burst, kept as one point in time: when the bucket will be full again. Pure; the clock comes
// in.
#pragma once

#include "actors/room/room_effects.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace handoff::control {

struct rate_limit {
  std::uint32_t per_second = 1, burst = 1;
};

class token_bucket {
 public:
  /// false: nothing is left, and nothing was taken.
  bool take(const rate_limit& limit, time_point now) {
    auto one = duration(std::chrono::seconds(1)) / limit.per_second;
    auto next = std::max(full_at_, now) + one;
    if (next - now > one * limit.burst) return false;
    full_at_ = next;
    return true;
  }
  time_point full_at() const { return full_at_; }

 private:
  time_point full_at_ = time_point::min();
};

/// Keeps others from filling our log: holds lines back and says how many.
class line_limiter {
 public:
  explicit line_limiter(const rate_limit& limit) : limit_(limit) {}

  /// Empty: hold this line back. Else how many were held back since the last one.
  std::optional<std::uint64_t> say(time_point now) {
    if (!bucket_.take(limit_, now)) {
      ++held_back_;
      return {};
    }
    return std::exchange(held_back_, 0);
  }

 private:
  rate_limit limit_;
  token_bucket bucket_;
  std::uint64_t held_back_ = 0;
};

}  // namespace handoff::control
