#include "tools/sim/workload.hpp"

#include <algorithm>

namespace handoff::sim {
namespace {

constexpr std::uint64_t tokens_max = 24;
constexpr unsigned waits_max = 100;

}  // namespace

workload::workload(kernel& k, const world_options& options, fault_set active,
                   std::function<rank_host*(std::size_t)> rank_of,
                   std::function<void(duration, std::function<void()>)> at_router)
    : k_(k),
      options_(options),
      active_(active),
      rank_of_(std::move(rank_of)),
      at_router_(std::move(at_router)) {
  for (std::uint32_t i = 0; i < options_.rooms; ++i) plan_room(i);
}

bool workload::happens(fault kind, room_plan& r, double p) {
  if (!on(kind) || !r.random.chance(p)) return false;
  ++k_.counts.of(kind);
  return true;
}

/// How long an engine takes for what usually takes so long.
duration workload::pause(room_plan& r, duration usual) {
  if (happens(fault::late_call, r, 0.08)) return r.random.between(100ms, 5s);
  return r.random.between(duration(0), usual);
}

// -- rooms -------------------------------------------------------------------------------------------------

void workload::plan_room(std::uint32_t number) {
  auto& r = rooms_.emplace_back();
  r.random = dice(options_.seed, 1000 + number);
  r.id = {number == 0 ? 0 : r.random.next()};
  r.tokens = 1 + r.random.below(tokens_max);
  if (r.random.chance(0.4)) r.prefix = r.random.below(r.tokens / long_page_tokens + 1) * long_page_tokens;
  if (r.random.chance(0.05)) r.prefix = r.tokens;
  r.tries_max = 1 + static_cast<unsigned>(r.random.below(3));
  const auto source = r.random.below(options_.prefill);
  r.sides[0].slot = 1 + source;
  r.sides[1].slot = 1 + options_.prefill + r.random.below(options_.decode);
  const bool by_address = source == 0 && r.random.chance(0.3);
  r.peer = by_address ? "bootstrap:1" : fmt::format("prefill-{}", source);
}

void workload::start() {
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    auto& r = rooms_[i];
    if (options_.only_rooms && !options_.only_rooms->contains(static_cast<std::uint32_t>(i))) continue;
    ++k_.counts.rooms;
    open_sides_ += 2;
    const auto at = r.random.between(20ms, 1500ms);
    for (auto side : {room_side::source, room_side::sink}) begin(i, side, at + pause(r, 20ms));
  }
}

void workload::start_aftermath() {
  stopped_ = false;
  active_.reset();
  for (std::uint32_t source = 0; source < options_.prefill; ++source)
    for (std::uint32_t sink = 0; sink < options_.decode; ++sink) {
      const auto plan = rooms_.size();
      plan_room(static_cast<std::uint32_t>(plan) + options_.rooms * 1000);
      auto& r = rooms_.back();
      r.after_storm = true;
      r.tries_max = 1;
      r.peer = fmt::format("prefill-{}", source);
      r.sides[0].slot = 1 + source;
      r.sides[1].slot = 1 + options_.prefill + sink;
      aftermath_ += 2;
      open_sides_ += 2;
      for (auto side : {room_side::source, room_side::sink}) begin(plan, side, duration(0));
    }
}

void workload::begin(std::size_t plan, room_side side, duration d) {
  side_of(rooms_[plan], side).running = false;
  at_router_(d, [this, plan, side] {
    auto& s = side_of(rooms_[plan], side);
    if (stopped_) return end(plan, side);
    auto* rank = rank_of_(s.slot);
    if (rank == nullptr) return begin(plan, side, 100ms);
    s.running = true;
    rank->later(duration(0), [this, plan, side, rank] { begin_here(plan, side, *rank, 0); });
  });
}

/// The engine starts the room, as soon as it has pages and the last try is over.
void workload::begin_here(std::size_t plan, room_side side, rank_host& rank, unsigned waits) {
  auto& r = rooms_[plan];
  auto& s = side_of(r, side);
  if (waits == 0 && happens(fault::missing_call, r, 0.1)) return end(plan, side);
  engine_room room;
  room.plan = plan;
  room.attempt_number = s.tries;
  room.key.room = r.id;
  bool begun = false;
  if (side == room_side::source && !rank.knows(side, r.id)) {
    if (auto pages = rank.allocate(r.tokens)) {
      room.tokens = r.tokens;
      room.pages = std::move(*pages);
      begun = rank.offer(std::move(room), r.random.chance(0.5) ? duration(0) : duration(2s));
    }
  } else if (side == room_side::sink && !rank.knows(side, r.id)) {
    begun = rank.announce(std::move(room), r.peer);
  }
  if (!begun) {
    if (waits == waits_max) return end(plan, side);
    return rank.later(r.random.between(1ms, 40ms),
                      [this, plan, side, &rank, waits] { begin_here(plan, side, rank, waits + 1); });
  }
  ++s.tries;
  ++k_.counts.tries;
  plan_troubles(plan, side, rank);
  if (side != room_side::source) return;
  s.chunks = cut(r);
  if (!r.random.chance(0.3)) send_chunks(plan, rank);  // else once every destination is known
}

void workload::plan_troubles(std::size_t plan, room_side side, rank_host& rank) {
  auto& r = rooms_[plan];
  const auto soon = [&] {
    return r.random.chance(0.7) ? r.random.between(0us, 20ms) : r.random.between(0us, 3s);
  };
  if (happens(fault::abort, r, 0.2))
    rank.later(soon(), [&rank, id = r.id] { rank.abort(id, "the client left"); });
  if (r.random.chance(0.1)) rank.later(soon(), [&rank, id = r.id] { rank.quiesce(id); });
  if (side == room_side::source && happens(fault::wrong_call, r, 0.1))
    rank.later(soon(), [&rank, id = r.id] { rank.send(id, {0, 8, 0, 1}, false); });
  if (side == room_side::sink && happens(fault::wrong_call, r, 0.1))
    rank.later(soon(), [&rank, id = r.id, tokens = r.tokens] {
      if (auto pages = rank.allocate(tokens)) rank.publish(id, tokens, 0, std::move(*pages));
    });
}

/// After a failure both sides of a router try again, each when it hears of it.
void workload::again(std::size_t plan, room_side side, bool failed) {
  auto& r = rooms_[plan];
  auto& s = side_of(r, side);
  if (!failed || s.tries >= r.tries_max) return end(plan, side);
  begin(plan, side, r.random.between(1ms, 200ms));
}

void workload::end(std::size_t plan, room_side side) {
  auto& s = side_of(rooms_[plan], side);
  if (std::exchange(s.over, true)) return;
  s.running = false;
  --open_sides_;
}

void workload::restarted(std::size_t slot) {
  for (std::size_t i = 0; i < rooms_.size(); ++i)
    for (auto side : {room_side::source, room_side::sink}) {
      auto& r = rooms_[i];
      auto& s = side_of(r, side);
      if (s.slot != slot || s.over || !s.running) continue;
      again(i, side, r.random.chance(0.7));
    }
}

// -- what engines do in a room -----------------------------------------------------------------------------

void workload::on_event(rank_host& rank, const engine_room& room, const queued_event& event) {
  auto& r = rooms_[room.plan];
  const auto& e = event.event;
  const auto plan = room.plan;
  if (e.what == room_event::kind::released && r.after_storm && room.poll == kv_poll::success) --aftermath_;
  if (e.what == room_event::kind::released) return again(plan, e.side, room.poll != kv_poll::success);
  if (e.side == room_side::source) {
    if (e.poll == kv_poll::waiting_for_input) send_chunks(plan, rank);
  } else if (e.poll == kv_poll::waiting_for_input) {
    if (happens(fault::missing_call, r, 0.05)) return;
    rank.later(pause(r, 5ms), [this, plan, &rank] { publish(plan, rank, 0); });
  } else if (e.poll == kv_poll::success) {
    rank.later(pause(r, 5ms), [this, plan, &rank] {
      auto& mine = rooms_[plan];
      if (happens(fault::abort, mine, 0.1)) return rank.abort(mine.id, "not wanted any more");
      rank.commit(mine.id);
    });
  }
}

std::vector<layout::range> workload::cut(room_plan& r) {
  std::vector<layout::range> out;
  for (std::uint64_t from = 0; from < r.tokens;) {
    const auto pages = 1 + r.random.below(3);
    const auto to = std::min(r.tokens, from + pages * long_page_tokens);
    const auto split = r.random.chance(0.4) ? 1 + static_cast<std::uint32_t>(r.random.below(2)) : 0;
    if (split != 0) out.push_back({from, to, 0, split});
    out.push_back({from, to, split, UINT32_MAX});
    from = to;
  }
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[r.random.below(i)]);
  return out;
}

void workload::send_chunks(std::size_t plan, rank_host& rank) {
  auto& r = rooms_[plan];
  auto& s = r.sides[0];
  const auto chunks = std::exchange(s.chunks, {});
  duration at{};
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (happens(fault::missing_call, r, 0.03)) return;
    at += pause(r, 3ms);
    const bool last = i + 1 == chunks.size();
    rank.later(at, [&rank, id = r.id, number = s.tries, what = chunks[i], last] {
      const auto* room = rank.find(room_side::source, id);
      if (room != nullptr && room->attempt_number + 1 == number) rank.send(id, what, last);
    });
  }
}

void workload::publish(std::size_t plan, rank_host& rank, unsigned waits) {
  auto& r = rooms_[plan];
  const auto* room = rank.find(room_side::sink, r.id);
  if (room == nullptr || is_terminal(room->poll)) return;
  const auto tokens = happens(fault::wrong_call, r, 0.05) ? r.tokens + 3 : r.tokens;
  auto pages = rank.allocate(tokens);
  if (!pages) {
    if (waits < waits_max) rank.later(5ms, [this, plan, &rank, waits] { publish(plan, rank, waits + 1); });
    return;
  }
  rank.publish(r.id, tokens, std::min(r.prefix, tokens), std::move(*pages));
}

}  // namespace handoff::sim
