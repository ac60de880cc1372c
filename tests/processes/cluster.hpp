// A bootstrap, two prefill and two decode engines with streams of rooms between them: what one failing
// process does to the others is seen by what becomes of their rooms.
#pragma once

#include "tests/processes/engine_group.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace handoff::test {

/// One room: who hands it to whom, and how it ended on either side.
struct room_record {
  struct end {
    replay::room_outcome outcome;
    std::uint64_t at_ns = 0;
  };
  std::uint64_t room = 0, started_ns = 0;
  std::string source, sink;
  std::optional<end> at_source, at_sink;

  bool over() const { return at_source && at_sink; }
  bool succeeded() const {
    return over() && at_source->outcome.failure.empty() && at_sink->outcome.failure.empty();
  }
  const std::optional<end>& at(const std::string& engine) const {
    return engine == source ? at_source : at_sink;
  }
};

class cluster {
 public:
  /// Silence is noticed sooner than by default, so that a case takes little time.
  static constexpr replay::worker_bounds usual_bounds{100, 600, 1200, 2000, 300, 1200, 2500};
  static constexpr std::uint64_t tokens = 64;
  static constexpr const char* engines[] = {"prefill-1", "prefill-2", "decode-1", "decode-2"};

  /// Starts bootstrap and engines, hands one room over between each pair, and marks their counts.
  cluster(std::string provider, std::vector<std::string> names, std::uint64_t seed,
          replay::worker_faults faults = {}, replay::worker_bounds bounds = usual_bounds);

  void start_engine(const std::string& name, const replay::worker_faults& faults = {});
  void start_bootstrap();
  /// Ends a process in order; REQUIREs that it ended well.
  void end(const std::string& name);
  /// Names it dead: its rooms have no end there any more.
  void bury(const std::string& name);

  std::uint64_t start_room(const std::string& source, const std::string& sink, bool at_source = true,
                           bool at_sink = true, std::uint64_t room = 0);
  std::uint64_t next_room() const { return next_room_; }
  /// Keeps `width` rooms in flight from one engine to another, while `run` runs.
  void stream(const std::string& source, const std::string& sink, std::size_t width);
  void stop_stream(const std::string& source, const std::string& sink);
  bool run(const std::function<bool()>& done, milliseconds bound);
  /// Until a room between them succeeds.
  void warm(const std::string& source, const std::string& sink);
  void warm_all(const std::string& engine);
  /// All streams end, and every room with them.
  void quiet();

  void mark(const std::string& name);
  /// No room is left: what the engine still holds, and what was written where no room was.
  replay::worker_summary settle(const std::string& name);

  std::size_t successes(const std::string& source, const std::string& sink, std::uint64_t from_ns) const;
  /// Rooms of the engine that have no end on its own side.
  std::vector<std::uint64_t> open_at(const std::string& engine) const;
  /// Rooms that are over and did not succeed on both sides.
  std::string failures(const std::string& source, const std::string& sink, bool open_too = false) const;

  engine_group group;
  std::map<std::uint64_t, room_record> rooms;

 private:
  struct flow {
    std::string source, sink;
    std::size_t width;
    std::vector<std::uint64_t> flying;
  };
  void pump();

  replay::worker_setup setup_of(const std::string& name) const;

  std::string provider_, bootstrap_;
  std::vector<std::string> names_;
  std::uint64_t seed_, next_room_ = 1;
  replay::worker_bounds bounds_;
  std::vector<flow> flows_;
};

}  // namespace handoff::test
