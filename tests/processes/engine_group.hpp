// Engines as processes of their own (`handoff replay-worker`), steered over their lines: started, fed with
// rooms, killed, stopped and continued by the test. Every wait is bounded.
#pragma once

#include "tools/replay/child_process.hpp"
#include "tools/replay/control.hpp"
#include "tools/replay/line_channel.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace handoff::test {

using std::chrono::milliseconds;

/// The clock of the rooms' outcomes.
inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                    std::chrono::nanoseconds(1));
}

class engine_group {
 public:
  /// One life of a process.
  struct engine {
    engine(replay::child_process started, replay::worker_setup with)
        : process(std::move(started)), reader(process.output()), setup(std::move(with)) {}

    replay::child_process process;
    replay::line_reader reader;
    replay::worker_setup setup;
    std::optional<replay::ready_note> ready;
    std::uint64_t breakpoint_ns = 0;  ///< when its breakpoint was met; 0: not yet
    std::string breakpoint;
    std::uint64_t marks = 0;
    std::vector<replay::worker_summary> summaries;
    std::string failed;         ///< the worker gave up, and why
    std::uint64_t gone_ns = 0;  ///< its output ended
  };

  /// Called with every room that ended on one side.
  std::function<void(const std::string& engine, const replay::room_outcome& outcome)> on_room;

  engine& start(const replay::worker_setup& setup);
  engine& operator[](const std::string& name) { return *engines_.at(name); }
  bool has(const std::string& name) const { return engines_.contains(name); }

  void send(const std::string& name, const std::string& line);
  /// Reads lines until `done`; false when the bound passed before.
  bool wait(const std::function<bool()>& done, milliseconds bound);
  /// Reads the lines that are there.
  void poll_lines(milliseconds timeout);

  void signal(const std::string& name, int number);
  /// Ends it in order (closes its input); the text says what did not go well.
  std::string finish(const std::string& name, milliseconds bound);
  /// Waits for a process that was killed.
  void reap(const std::string& name);

  /// Remembers under which names the process has files in /dev/shm: the dead tell nothing.
  void remember_shm(const std::string& name);
  /// What is in /dev/shm under such names.
  std::vector<std::string> shm_names() const;

 private:
  void take(engine& e, const std::string& text);

  std::map<std::string, std::unique_ptr<engine>> engines_;
  std::set<std::string> shm_prefixes_;
};

}  // namespace handoff::test
