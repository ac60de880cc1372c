// One side of the rooms of a worker: what an engine's scheduler would do with them. Written against the
// embedding API alone.
#pragma once

#include "actors/runtime.hpp"
#include "tools/replay/control.hpp"
#include "tools/replay/page_allocator.hpp"
#include "tools/replay/page_oracle.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff::replay {

/// Bytes that one call of `work` fills or compares: a millisecond or two, so that events are taken in time.
inline constexpr std::uint64_t work_bytes = 8 * 1024 * 1024;

std::uint64_t now_ns();  ///< CLOCK_MONOTONIC

/// What a driver works with; all of it outlives the driver.
struct driver_context {
  runtime& engine;
  page_oracle& oracle;
  page_allocator& pages;
  component_id component;
  const worker_setup& setup;
  std::function<void(const room_outcome&)> report;
};

/// Common part: waiting for pages, walking over a room's items piece by piece, giving pages back.
class room_driver {
 public:
  explicit room_driver(driver_context context) : context_(std::move(context)) {}
  virtual ~room_driver() = default;
  room_driver(const room_driver&) = delete;
  room_driver& operator=(const room_driver&) = delete;

  void start(const room_order& order);
  void take(const room_event& event);
  /// A bounded piece of work; false: there is none.
  bool work();
  bool idle() const { return rooms_.empty(); }

 protected:
  struct room {
    room_pages place;
    room_outcome outcome;
    std::string source;       ///< where it comes from, if not from the setup's source
    std::uint64_t order = 0;  ///< of its start in this worker, from 0
    std::uint64_t deadline_ns = 0;
    std::optional<kv_poll> verdict;
    bool released = false;
    bool finishing = false;
    std::function<void(std::uint64_t item)> visit;  ///< the sweep under way, over the room's items
    std::function<void()> then;
    std::uint64_t next_item = 0;
  };

  /// The room has its pages now.
  virtual void begin(room& r) = 0;
  virtual void changed(room& r, const room_event& event) = 0;

  /// Calls `visit` for every item of the room in pieces, then `then`.
  void sweep(room& r, std::function<void(std::uint64_t item)> visit, std::function<void()> then);
  void note_failure(room& r, const error& reason);
  void note_finding(room& r, std::string text);
  /// Poisons and frees the pages, reports the outcome, forgets the room.
  void finish(room& r);
  /// Reports the outcome and forgets the room; its pages stay with it.
  void leave(room& r);
  std::span<const page_span> spans(const room& r);

  driver_context context_;

 private:
  bool try_begin(room& r);

  std::unordered_map<std::uint64_t, std::unique_ptr<room>> rooms_;
  std::deque<room*> waiting_;  ///< for pages, in the order of their start
  std::deque<room*> sweeping_;
  std::uint64_t started_ = 0;
  page_span span_;
};

std::unique_ptr<room_driver> make_source_driver(driver_context context);
std::unique_ptr<room_driver> make_sink_driver(driver_context context);

/// Predictable, different for every room: what the prefill side writes and the decode side expects.
metadata_row row_of(std::uint64_t seed, room_id room, std::uint64_t tokens);

}  // namespace handoff::replay
