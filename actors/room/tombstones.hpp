// What is remembered of ended rooms, so that late messages find an answer and nothing is resurrected. Bounded
// in time and number. Pure.
#pragma once

#include "actors/room/room_effects.hpp"

#include <cstddef>
#include <deque>
#include <unordered_map>

namespace handoff {

struct tombstone {
  room_key key;
  kv_poll poll = kv_poll::failed;
  error reason;
  time_point expires;
  bool unclaimed =
      false;  ///< a peer ended it before our engine spoke of it: the engine must still hear of it
};

class tombstones {
 public:
  tombstones(std::size_t count_max, duration time_to_live)
      : count_max_(count_max), time_to_live_(time_to_live) {}

  void bury(room_key key, kv_poll poll, error reason, bool unclaimed, time_point now) {
    auto& grave = graves_[key.room];
    grave = {key, poll, std::move(reason), now + time_to_live_, unclaimed};
    order_.push_back({key.room, grave.expires});
    expire(now);
  }

  const tombstone* find(room_id room) const {
    auto i = graves_.find(room);
    return i == graves_.end() ? nullptr : &i->second;
  }

  /// A room that ended before it met an attempt ends the first one that comes.
  void adopt(room_key key) {
    auto i = graves_.find(key.room);
    if (i != graves_.end() && i->second.key.attempt.value == 0) i->second.key = key;
  }

  void claim(room_id room) {
    auto i = graves_.find(room);
    if (i != graves_.end()) i->second.unclaimed = false;
  }

  /// Amortised O(1): the oldest stand in front, because all live equally long.
  void expire(time_point now) {
    while (!order_.empty() && (order_.front().second <= now || graves_.size() > count_max_)) {
      auto [room, expires] = order_.front();
      order_.pop_front();
      auto i = graves_.find(room);
      if (i != graves_.end() && i->second.expires == expires) graves_.erase(i);
    }
  }

  std::size_t size() const { return graves_.size(); }

 private:
  std::size_t count_max_;
  duration time_to_live_;
  std::unordered_map<room_id, tombstone> graves_;
  std::deque<std::pair<room_id, time_point>> order_;
};

}  // namespace handoff
