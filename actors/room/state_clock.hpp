// The state of one room's machine with the time spent in each. Every change goes through `move`, which tells
// the optional log.
#pragma once

#include "actors/room/room_effects.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

namespace handoff {

/// Called on every transition of every room: old state -> new state; `from` is empty for a new room.
using transition_log =
    std::function<void(const room_key& key, std::string_view from, std::string_view to, time_point now)>;

/// Called for every event that a machine takes, with the state that it meets.
using event_log = std::function<void(std::string_view state, std::string_view event)>;

template <class State, std::size_t Count>
class state_clock {
 public:
  explicit state_clock(time_point now) : entered_(now) {}

  void move(State to, const room_key& key, const transition_log& log, time_point now) {
    if (log) log(key, to_string(state_), to_string(to), now);
    spent_[static_cast<std::size_t>(state_)] += now - entered_;
    state_ = to;
    entered_ = now;
  }

  State state() const { return state_; }
  time_point entered() const { return entered_; }
  duration time_in(State state, time_point now) const {
    auto spent = spent_[static_cast<std::size_t>(state)];
    return state == state_ ? spent + (now - entered_) : spent;
  }

 private:
  State state_{};
  time_point entered_;
  std::array<duration, Count> spent_{};
};

}  // namespace handoff
