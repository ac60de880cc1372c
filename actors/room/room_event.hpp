// What an engine hears of its rooms, and the way there from a rank's rooms. Pure data.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"

#include <array>
#include <cstdint>

namespace handoff {

enum class room_side : std::uint8_t { source, sink };

/// A changed verdict, or `released`.
struct room_event {
  enum class kind : std::uint8_t { verdict, released };
  kind what = kind::verdict;
  room_side side = room_side::source;
  kv_poll poll = kv_poll::bootstrapping;
  errc code = errc::ok;
  room_key key;
  proven_by_component proven_tokens{};  ///< sink, terminal: tokens that arrived, without its own prefix
  std::array<char, 208> reason{};       ///< failed: NUL-terminated text, the same on both sides
};

/// An event and, for a sink's success, the slot that `commit` reads.
struct queued_event {
  room_event event;
  slot_id slot;
};

/// Where a rank's rooms put their events: the queue that the engine's thread empties.
class event_port {
 public:
  virtual ~event_port() = default;
  virtual void push(room_side side, const queued_event& event) = 0;
  /// Tries again what did not fit.
  virtual void flush(room_side side) = 0;
  /// The engine does not take its events.
  virtual bool backlogged(room_side side) const = 0;
};

}  // namespace handoff
