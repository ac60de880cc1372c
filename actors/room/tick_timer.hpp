// One pending `tick` per actor, at the earliest deadline of what it holds.
#pragma once

#include "actors/interfaces.hpp"

#include <algorithm>

namespace handoff {

class tick_timer {
 public:
  /// After every message: `next` is when a tick is due; max() for never.
  template <class Interface, class Self>
  void set(Self* self, time_point next) {
    if (next == time_point::max() || (pending_ && at_ <= next)) return;
    pending_ = true;
    at_ = next;
    tell_after(std::max(next - now_of(self), duration(0)), Interface(self), tick{});
  }

  /// False for a tick that an earlier deadline has replaced.
  bool due(time_point now) {
    if (!pending_ || now < at_) return false;
    pending_ = false;
    return true;
  }

 private:
  bool pending_ = false;
  time_point at_;
};

}  // namespace handoff
