// The source rooms of one rank with nothing around them: the test is the engine, every sink and the fabric,
// which delivers at once. What the rooms say is kept.
#pragma once

#include "actors/prefill/source_rooms.hpp"
#include "tests/actors/machines/rig.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace handoff::testing {

/// What a sink heard: `room_done` as success, an abort as failed with its reason.
struct heard {
  std::string who;
  kv_poll status = kv_poll::failed;
  std::string reason;
};

class bare_source final : public fabric_port {
 public:
  explicit bare_source(duration unclaimed = 120s, duration remembered = 600s);

  // the engine
  void offer(room_id room);
  void send(room_id room, std::uint64_t first_token, std::uint64_t last_token);
  void abort(room_id room, const std::string& reason);
  // the sinks, by name
  void announce(room_key key, const std::string& who, std::size_t ranks);
  void publish(room_key key, const std::string& who);
  void confirm(room_key key, const std::string& who, bool success);
  void peer_abort(room_key key, const std::string& who);
  void advance(duration d);
  /// From now on writes end when `deliver` is called.
  void hold() { held_ = true; }
  void deliver();

  /// The last verdict since `forget`, as the engine took it.
  std::optional<kv_poll> verdict(room_id room) const;
  std::string reason(room_id room) const;
  /// The engine does so when it has taken the room's end.
  void forget(room_id room);
  const tombstone* grave(room_id room) const { return rooms_->desk().graves.find(room); }
  std::vector<heard> take_heard() { return std::exchange(heard_, {}); }
  /// All frames and writes as one line, for example "abort(aborted)>1; write 4>1+done".
  std::string take_said() { return std::exchange(said_, {}); }
  std::uint64_t duplicates() const { return duplicates_; }
  /// Pages and slots in use.
  bool baseline() const;
  std::uint64_t open_rooms() const { return rooms_->status().counts.at(0).second; }

 private:
  struct kept;

  void submit(submit_call call) override;
  void send(frame_call call) override;
  void connect(connect_call) override {}
  void fence(fence_call) override {}
  void frame(const std::string& who, room_message message);
  void settle();
  peer_view view(const std::string& who);

  rig rig_;
  std::vector<std::byte> rows_;
  std::shared_ptr<kept> kept_;
  std::unique_ptr<source_rooms> rooms_;
  std::map<std::string, std::uint32_t> peers_;
  std::map<peer_id, std::string> names_;
  std::map<room_id, std::uint32_t> pages_;
  std::vector<submit_call> submitted_;
  std::vector<heard> heard_;
  std::string said_;
  bool held_ = false;
  std::uint64_t duplicates_ = 0;
  time_point now_ = at(0s);
};

/// "aborted: why (seen by whom)" -> "why".
std::string bare_reason(const std::string& text);

}  // namespace handoff::testing
