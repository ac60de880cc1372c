// The conversation about one room, as frames between a source rank and a sink rank:
//
//   sink   announce ---->  source   a request is coming; opens, and repeated renews; says how many sink ranks
//   will publish sink   publish ----->  source   destination pages, metadata slot, prefix that is already
//   there (numbered parts)
//          (source writes KV and state, then the metadata row, each flushed)
//   source progress ---->  sink     after a chunk: the tokens that have arrived in every layer so far
//   source room_done --->  sink     what was written, by which plan; the sink compares with its own plan
//   sink   room_result ->  source   the sink's verdict
//   either abort, answered by drained once the last write of that attempt has completed
//
// Every message carries (room, attempt); `source` and `sink` say which ranks of the two engines are meant.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/inspect.hpp"
#include "messages/kv_poll.hpp"
#include "messages/message_type.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

struct announce_message {
  static constexpr auto type = message_type::announce;
  room_key key;
  rank_coord source, sink;
  std::uint16_t sink_ranks = 1;  ///< sink ranks that will publish to this source rank
  std::string label;
  friend bool operator==(const announce_message&, const announce_message&) = default;
};

/// Destination pages of one component, in token order.
struct component_pages {
  component_id component;
  std::uint64_t first_token = 0;    ///< token at which the first page starts
  std::uint64_t prefix_tokens = 0;  ///< tokens of this component that the sink holds already
  std::vector<page_run> runs;
  friend bool operator==(const component_pages&, const component_pages&) = default;
};

struct publish_message {
  static constexpr auto type = message_type::publish;
  room_key key;
  rank_coord source, sink;
  std::uint16_t part = 0, parts = 1;  ///< a publish counts when every part is here
  slot_id slot;
  std::vector<component_pages> pages;
  friend bool operator==(const publish_message&, const publish_message&) = default;
};

/// Which tokens of which component the source rank wrote.
struct component_coverage {
  component_id component;
  std::uint64_t first_token = 0, last_token = 0;  ///< [first, last)
  std::uint64_t bytes = 0;
  friend bool operator==(const component_coverage&, const component_coverage&) = default;
};

struct room_done_message {
  static constexpr auto type = message_type::room_done;
  room_key key;
  rank_coord source, sink;
  slot_id slot;
  std::uint64_t tokens = 0;     ///< of the whole prompt
  std::uint64_t bytes = 0;      ///< all components, without the metadata row
  std::uint64_t plan_hash = 0;  ///< digest of the blocks in plan order
  std::vector<component_coverage> coverage;
  friend bool operator==(const room_done_message&, const room_done_message&) = default;
};

/// Tokens [first that this sink is owed, last_token) have arrived in every layer.
struct component_progress {
  component_id component;
  std::uint64_t last_token = 0;
  friend bool operator==(const component_progress&, const component_progress&) = default;
};

struct progress_message {
  static constexpr auto type = message_type::progress;
  room_key key;
  rank_coord source, sink;
  std::vector<component_progress> delivered;  ///< cumulative; without those where nothing has arrived
  friend bool operator==(const progress_message&, const progress_message&) = default;
};

struct room_result_message {
  static constexpr auto type = message_type::room_result;
  room_key key;
  rank_coord source, sink;
  kv_poll verdict = kv_poll::failed;
  error reason;
  friend bool operator==(const room_result_message&, const room_result_message&) = default;
};

struct abort_message {
  static constexpr auto type = message_type::abort;
  room_key key;
  rank_coord source, sink;
  bool from_source = false;
  error reason;
  friend bool operator==(const abort_message&, const abort_message&) = default;
};

struct drained_message {
  static constexpr auto type = message_type::drained;
  room_key key;
  rank_coord source, sink;
  bool from_source = true;
  error reason;  ///< why the room ended, should its abort come later or be lost
  friend bool operator==(const drained_message&, const drained_message&) = default;
};

/// What the codec refuses after decoding; see messages/wire_codec.hpp.
error check_limits(const announce_message& x);
error check_limits(const publish_message& x);
error check_limits(const room_done_message& x);
error check_limits(const progress_message& x);

template <class F>
auto inspect(F& f, announce_message& x) {
  return fields(f, "announce", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("sink_ranks", x.sink_ranks), field("label", x.label));
}
template <class F>
auto inspect(F& f, component_pages& x) {
  return fields(f, "component_pages", field("component", x.component), field("first_token", x.first_token),
                field("prefix_tokens", x.prefix_tokens), field("runs", x.runs));
}
template <class F>
auto inspect(F& f, publish_message& x) {
  return fields(f, "publish", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("part", x.part), field("parts", x.parts), field("slot", x.slot),
                field("pages", x.pages));
}
template <class F>
auto inspect(F& f, component_coverage& x) {
  return fields(f, "component_coverage", field("component", x.component), field("first_token", x.first_token),
                field("last_token", x.last_token), field("bytes", x.bytes));
}
template <class F>
auto inspect(F& f, room_done_message& x) {
  return fields(f, "room_done", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("slot", x.slot), field("tokens", x.tokens), field("bytes", x.bytes),
                field("plan_hash", x.plan_hash), field("coverage", x.coverage));
}
template <class F>
auto inspect(F& f, component_progress& x) {
  return fields(f, "component_progress", field("component", x.component), field("last_token", x.last_token));
}
template <class F>
auto inspect(F& f, progress_message& x) {
  return fields(f, "progress", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("delivered", x.delivered));
}
template <class F>
auto inspect(F& f, room_result_message& x) {
  return fields(f, "room_result", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("verdict", x.verdict), field("reason", x.reason));
}
template <class F>
auto inspect(F& f, abort_message& x) {
  return fields(f, "abort", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("from_source", x.from_source), field("reason", x.reason));
}
template <class F>
auto inspect(F& f, drained_message& x) {
  return fields(f, "drained", field("key", x.key), field("source", x.source), field("sink", x.sink),
                field("from_source", x.from_source), field("reason", x.reason));
}

}  // namespace handoff
