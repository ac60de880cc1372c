// Strong ids: the words of the field, each a type of its own so that none can be taken for another.
#pragma once

#include "messages/inspect.hpp"

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace handoff {

struct error;

template <class Tag, class Rep>
struct strong_id {
  using rep = Rep;
  Rep value = 0;
  friend constexpr auto operator<=>(const strong_id&, const strong_id&) = default;
};

template <class Tag, class Rep>
inline constexpr bool wire_frozen<strong_id<Tag, Rep>> = true;

template <class F, class Tag, class Rep>
auto inspect(F& f, strong_id<Tag, Rep>& x) {
  return fields(f, "id", field("value", x.value));
}

/// One KV handoff, chosen by the router; every value is legal, 0 too.
using room_id = strong_id<struct room_tag, std::uint64_t>;
/// Re-bootstraps of a room, from 1; 0 means "not known yet".
using attempt_id = strong_id<struct attempt_tag, std::uint32_t>;
/// One life of an engine process: random, new at every start.
using incarnation_id = strong_id<struct incarnation_tag, std::uint64_t>;
/// Numbers the connections with one incarnation of a peer, from 1.
using session_id = strong_id<struct session_tag, std::uint32_t>;
/// The unit of KV allocation: `page_size` tokens of every buffer of one cache group.
using page_id = strong_id<struct page_tag, std::uint32_t>;
/// One row of the metadata buffers.
using slot_id = strong_id<struct slot_tag, std::uint32_t>;
/// Local name of a connected peer inside one runtime; never crosses the wire.
using peer_id = strong_id<struct peer_tag, std::uint32_t>;
/// Index of a registered memory region; peers see regions in this order.
using region_id = strong_id<struct region_tag, std::uint32_t>;
/// One submitted transfer of a runtime; never reused.
using transfer_id = strong_id<struct transfer_tag, std::uint64_t>;
/// Index into layout_descriptor::components.
using component_id = strong_id<struct component_tag, std::uint16_t>;

/// What every message, slot and lease carries: late messages of an older attempt are told apart.
struct room_key {
  room_id room;
  attempt_id attempt;
  friend constexpr auto operator<=>(const room_key&, const room_key&) = default;
};

/// Position of one engine rank.
struct rank_coord {
  std::uint16_t dp = 0, pp = 0, cp = 0, tp = 0;
  friend constexpr auto operator<=>(const rank_coord&, const rank_coord&) = default;
};

/// How many ranks an engine has along each axis; all at least 1.
struct rank_topology {
  std::uint16_t dp = 1, pp = 1, cp = 1, tp = 1;
  friend constexpr auto operator<=>(const rank_topology&, const rank_topology&) = default;
};

/// `count` consecutive pages from `first`: page lists travel as runs.
struct page_run {
  page_id first;
  std::uint32_t count = 0;
  friend constexpr auto operator<=>(const page_run&, const page_run&) = default;
};

template <>
inline constexpr bool wire_frozen<room_key> = true;
template <>
inline constexpr bool wire_frozen<rank_coord> = true;
template <>
inline constexpr bool wire_frozen<rank_topology> = true;
template <>
inline constexpr bool wire_frozen<page_run> = true;

template <class F>
auto inspect(F& f, room_key& x) {
  return fields(f, "room_key", field("room", x.room), field("attempt", x.attempt));
}
template <class F>
auto inspect(F& f, rank_coord& x) {
  return fields(f, "rank_coord", field("dp", x.dp), field("pp", x.pp), field("cp", x.cp), field("tp", x.tp));
}
template <class F>
auto inspect(F& f, rank_topology& x) {
  return fields(f, "rank_topology", field("dp", x.dp), field("pp", x.pp), field("cp", x.cp),
                field("tp", x.tp));
}
template <class F>
auto inspect(F& f, page_run& x) {
  return fields(f, "page_run", field("first", x.first), field("count", x.count));
}

/// Refuses a topology without ranks; see messages/wire_codec.hpp.
error check_limits(const rank_topology& topology);

/// "room 7 attempt 1", for texts.
std::string to_string(const room_key& key);
/// "dp0 pp0 cp0 tp0", for texts.
std::string to_string(const rank_coord& rank);

}  // namespace handoff

template <class Tag, class Rep>
struct std::hash<handoff::strong_id<Tag, Rep>> {
  std::size_t operator()(const handoff::strong_id<Tag, Rep>& x) const noexcept {
    return std::hash<Rep>{}(x.value);
  }
};

template <>
struct std::hash<handoff::room_key> {
  std::size_t operator()(const handoff::room_key& k) const noexcept {
    return std::hash<std::uint64_t>{}(k.room.value * 0x9e3779b97f4a7c15u + k.attempt.value);
  }
};
