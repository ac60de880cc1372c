// The router of a replay: starts the three processes, gives both engines the rooms, collects what they found.
#pragma once

#include "tools/replay/report.hpp"
#include "tools/replay/worker_group.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff::replay {

struct replay_plan {
  std::vector<std::uint64_t> tokens;  ///< of each request, scaled
  std::string model, provider;
  std::uint64_t bytes_per_token = 0;
  std::uint32_t page_tokens = 0, concurrency = 0, timeout_s = 0;
  std::uint32_t silence_s = 0;  ///< a process that says nothing for so long ends the replay
  std::uint64_t pool_pages = 0, seed = 0;
  sabotage_kind sabotage = sabotage_kind::none;
};

class router {
 public:
  /// `say` takes lines of progress.
  router(replay_plan plan, int interrupt_fd, std::function<void(const std::string&)> say);

  /// Runs to the end. The error is what ended the replay early; everything else stands in the report.
  error run(replay_report& report);

 private:
  struct flight {
    std::uint64_t tokens = 0, deadline_ns = 0;
    std::optional<room_outcome> source, sink;
  };

  error start_workers();
  error start_worker(engine_role role, const std::string& bootstrap);
  error wait_ready(engine_role role, std::string& endpoint);
  error replay_rooms();
  error start_room(std::uint64_t index);
  /// Waits for lines until fewer than `active` rooms are under way.
  error wait_below(std::size_t active);
  error take(const worker_group::message& message);
  void settle(std::uint64_t room, const flight& f);
  error check_hung();
  error mark();
  error finish();
  void check_shm();
  void find(std::string text);
  void progress();
  room_id next_room(std::uint64_t index);

  replay_plan plan_;
  std::function<void(const std::string&)> say_;
  worker_group workers_;
  std::mt19937_64 random_;
  std::unordered_map<std::uint64_t, flight> flights_;
  std::vector<std::string> shm_names_;
  std::uint64_t started_ns_ = 0, told_ns_ = 0, ended_rooms_ = 0;
  replay_report* report_ = nullptr;
};

}  // namespace handoff::replay
