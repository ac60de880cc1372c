// Who waits for a room, or for all rooms, to be over. Answers come when the rooms end, so nobody polls.
#pragma once

#include "actors/interfaces.hpp"

#include <unordered_map>
#include <vector>

namespace handoff {

class quiet_watch {
 public:
  using answer = caf::typed_response_promise<bool>;

  void wait(const quiesce_call& call, answer to) {
    if (call.all)
      all_.push_back(std::move(to));
    else
      rooms_[call.room].push_back(std::move(to));
  }

  void ended(room_id room) {
    auto i = rooms_.find(room);
    if (i == rooms_.end()) return;
    for (auto& to : i->second) to.deliver(true);
    rooms_.erase(i);
  }

  void all_ended() {
    for (auto& to : all_) to.deliver(true);
    all_.clear();
  }

 private:
  std::unordered_map<room_id, std::vector<answer>> rooms_;
  std::vector<answer> all_;
};

}  // namespace handoff
