// The deadlines of all rooms of one actor, earliest first: O(log rooms) per change, one pending tick. Pure.
#pragma once

#include "actors/room/room_effects.hpp"

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace handoff {

class room_timers {
 public:
  /// time_point::max() removes.
  void set(room_id room, time_point deadline) {
    auto i = current_.find(room);
    if (i != current_.end()) {
      if (i->second == deadline) return;
      order_.erase({i->second, room});
      current_.erase(i);
    }
    if (deadline == time_point::max()) return;
    order_.insert({deadline, room});
    current_.emplace(room, deadline);
  }

  time_point next() const { return order_.empty() ? time_point::max() : order_.begin()->first; }

  std::vector<room_id> due(time_point now) const {
    std::vector<room_id> rooms;
    for (auto i = order_.begin(); i != order_.end() && i->first <= now; ++i) rooms.push_back(i->second);
    return rooms;
  }

 private:
  std::set<std::pair<time_point, room_id>> order_;
  std::unordered_map<room_id, time_point> current_;
};

}  // namespace handoff
