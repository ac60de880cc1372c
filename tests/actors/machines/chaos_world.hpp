// One room between a source and a sink that are bare machines under the simplest possible actors, in virtual
// time: a channel that loses, duplicates, reorders and delays, writes that land late or never end, engines
// that come late, stop or abort, sessions that break. The world checks at every step what must hold at every
// step (memory, leases, verdicts); the test looks at the end.
#pragma once

#include "actors/lease/lease_table.hpp"
#include "actors/lease/slot_table.hpp"
#include "tests/actors/machines/rig.hpp"

#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace handoff::testing {

/// How bad one world is; probabilities in percent.
struct weather {
  unsigned lose = 0, duplicate = 0, reorder = 0;  ///< of each frame
  unsigned write_error = 0, write_stuck = 0;      ///< of each transfer
  unsigned session_loss = 0, abort = 0;           ///< of each room and side
  unsigned absent = 0;                            ///< an engine does not make its next call
  unsigned stale = 0;                             ///< a frame of an older attempt comes along
};

/// How often what happened, over all worlds.
using tally = std::map<std::string, std::uint64_t>;

class chaos_world {
 public:
  chaos_world(std::uint64_t seed, weather w, tally& counts);
  /// Until nothing is left to happen.
  void run();

  struct side_end {
    bool known = false;  ///< its engine announced or offered
    std::optional<kv_poll> verdict;
    error reason;
    int released = 0;
  };
  const side_end& source_end() const { return source_end_; }
  const side_end& sink_end() const { return sink_end_; }
  bool broken() const { return session_lost_ || frames_lost_ > 0; }
  bool reordered() const { return reordered_ > 0; }
  /// What broke a rule; empty is good.
  const std::vector<std::string>& violations() const { return violations_; }
  void check_end();

 private:
  struct happening {
    time_point when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const happening& other) const {
      return std::tie(when, number) > std::tie(other.when, other.number);
    }
  };
  struct write {
    transport::transfer what;
    bool stuck = false;
  };

  void after(duration d, std::function<void()> what);
  bool chance(unsigned percent) { return random_() % 100 < percent; }
  duration delay(int from_ms, int to_ms);
  void violate(std::string text);
  void count(const char* what) { ++(*counts_)[what]; }

  void plan_engines();
  void plan_faults();

  // the channel
  void carry(bool to_source, room_message message);
  void deliver_to_source(const room_message& message);
  void deliver_to_sink(const room_message& message);
  void lose_session();

  // the source's process
  void offer();
  void send_next();
  void abort_source(error reason);
  void step_source(const char* event, const std::function<void(sender_machine&, room_effects&)>& step);
  void apply_source(room_effects& effects);
  void answer_for_tombstone(const room_message& message);
  void close_source();

  // the sink's process
  void publish();
  void step_sink(const char* event, const std::function<void(receiver_machine&, room_effects&)>& step);
  void apply_sink(room_effects& effects);
  void close_sink();

  // the transport and the memory
  void start(transport::transfer t);
  void finish(transfer_id id, error result, bool drained);
  void land(const write& w);
  /// The bytes of tokens [prefix_, last_token) are there.
  void check_memory(std::uint64_t last_token, const char* claim);

  void arm_source();
  void arm_sink();
  void verdict(side_end& end, const verdict_effect& e, const char* side);
  void lease(lease_table& table, std::optional<lease_id>& id, side_end& end, lease_state to,
             const char* side);

  std::mt19937_64 random_;
  weather weather_;
  tally* counts_;
  rig rig_;
  time_point now_ = at(0s);
  std::uint64_t happenings_ = 0;
  std::priority_queue<happening> queue_;
  time_point channel_clear_[2];

  std::optional<sender_machine> source_;
  std::optional<receiver_machine> sink_;
  bool source_over_ = false, sink_over_ = false;  ///< tombstones
  error tombstone_;
  time_point source_armed_, sink_armed_;
  side_end source_end_, sink_end_;

  std::vector<layout::range> chunks_;
  std::size_t next_chunk_ = 0;
  std::uint64_t prefix_ = 0;

  lease_table source_leases_{{32, 0}}, sink_leases_{{32, 0}};
  slot_table source_slots_{8}, sink_slots_{8};
  std::optional<lease_id> source_lease_, sink_lease_;
  std::optional<slot_id> source_slot_, sink_slot_;
  room_key source_key_;

  std::map<transfer_id, write> writes_;
  std::vector<std::vector<std::uint8_t>> source_memory_, sink_memory_;  ///< by region
  std::map<slot_id, std::pair<metadata_row, room_key>> source_rows_, sink_rows_;
  bool source_closed_ = false, sink_closed_ = false;  ///< endpoints
  bool session_lost_ = false;
  std::uint64_t frames_lost_ = 0, reordered_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace handoff::testing
