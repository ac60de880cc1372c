// What a runtime's handle does for its engine, on simulated processes.
#include "tools/sim/rank_host.hpp"

#include <algorithm>

namespace handoff::sim {
namespace {

std::vector<component_pages> to_runs(const std::vector<std::vector<page_id>>& pages, std::uint64_t prefix) {
  std::vector<component_pages> out;
  for (std::size_t c = 0; c < pages.size(); ++c) {
    component_pages part{{static_cast<std::uint16_t>(c)}, 0, prefix, {}};
    for (auto page : pages[c]) {
      if (!part.runs.empty() && part.runs.back().first.value + part.runs.back().count == page.value)
        ++part.runs.back().count;
      else
        part.runs.push_back({page, 1});
    }
    out.push_back(std::move(part));
  }
  return out;
}

}  // namespace

engine_room* rank_host::find(room_side side, room_id room) {
  auto& calls = calls_[number(side)];
  const auto i = calls.find(room);
  return i == calls.end() ? nullptr : &i->second;
}

// -- calls -------------------------------------------------------------------------------------------------

bool rank_host::offer(engine_room room, duration lease) {
  const auto id = room.key.room;
  if (knows(room_side::source, id) ||
      layout::check_pages(*memory_.layout(), to_runs(room.pages, 0), room.tokens))
    return false;
  room.offer = static_cast<std::uint16_t>(offers_.size());
  offers_.push_back({id, {}});
  for (std::size_t b = 0; b < memory_.buffers(); ++b) {
    const auto& layout = memory_.layout()->buffers[b];
    const auto& pages = room.pages[layout.component.value];
    for (std::uint64_t t = 0; t < room.tokens; ++t)
      memory_.write(b, pages[t / layout.page_tokens], t % layout.page_tokens,
                    word{room.offer, static_cast<std::uint16_t>(t), static_cast<std::uint16_t>(b)}.packed());
  }
  const auto& s = settings_.source;
  room.since = now();
  room.not_awake = not_awake();
  room.bound = std::max(lease, s.bootstrap_timeout) + s.unclaimed_timeout + s.bootstrap_timeout +
               s.send_timeout + s.sending_timeout + 2 * s.result_timeout + 2 * s.quarantine_timeout + 1s;
  offer_call call{id, to_runs(room.pages, 0), room.tokens, lease, "label"};
  k_.trace(name(), "offers room {} ({} tokens, offer {})", id.value, room.tokens, room.offer);
  calls_[0].emplace(id, std::move(room));
  post(part::engine, part::source, [this, call = std::move(call)]() mutable { feed<part::source>(call); });
  return true;
}

void rank_host::send(room_id room, layout::range what, bool last) {
  const auto* r = find(room_side::source, room);
  if (r == nullptr) return;
  send_call call{room, what, last, {}};
  if (last) call.row = metadata_row{r->offer, static_cast<std::uint32_t>(r->tokens), 0, 0, 0};
  k_.trace(name(), "sends tokens [{}, {}) layers [{}, {}) of room {}{}", what.first_token, what.last_token,
           what.first_layer, std::min<std::uint32_t>(what.last_layer, 99), room.value,
           last ? ", the last" : "");
  post(part::engine, part::source, [this, call] { feed<part::source>(call); });
}

bool rank_host::announce(engine_room room, const std::string& peer) {
  const auto id = room.key.room;
  if (knows(room_side::sink, id) || succeeded_.contains(id)) return false;
  const auto& s = settings_.sink;
  room.since = now();
  room.not_awake = not_awake();
  room.bound = s.bootstrap_timeout + s.waiting_timeout + s.transfer_timeout + 2 * s.quarantine_timeout + 1s;
  k_.trace(name(), "announces room {} from {}", id.value, peer);
  calls_[1].emplace(id, std::move(room));
  post(part::engine, part::sink,
       [this, call = announce_call{id, peer, "label"}]() mutable { feed<part::sink>(call); });
  return true;
}

void rank_host::publish(room_id room, std::uint64_t tokens, std::uint64_t prefix,
                        std::vector<std::vector<page_id>> pages) {
  auto* r = find(room_side::sink, room);
  publish_call call{room, to_runs(pages, prefix), tokens};
  if (r == nullptr || layout::check_pages(*memory_.layout(), call.pages, tokens)) return free_pages(pages);
  // A second publish is the room's end; its pages are never taken.
  if (r->pages.empty()) {
    r->tokens = tokens;
    r->prefix = prefix;
    r->pages = std::move(pages);
  } else {
    free_pages(pages);
  }
  k_.trace(name(), "publishes room {} ({} tokens, prefix {})", room.value, tokens, prefix);
  post(part::engine, part::sink, [this, call = std::move(call)]() mutable { feed<part::sink>(call); });
}

void rank_host::commit(room_id room) {
  const auto i = succeeded_.find(room);
  if (i == succeeded_.end()) return;
  const auto [queued, record] = std::move(i->second);
  succeeded_.erase(i);
  const auto row = memory_.sink_rows().subspan(std::size_t{queued.slot.value} * row_schema::row_bytes,
                                               row_schema::row_bytes);
  if (auto read = read_row(row, queued.event.key); !read)
    k_.violate(name(), "commit of {}: {}", to_string(queued.event.key), to_string(read.error()));
  clear_stamp(row);
  k_.trace(name(), "commits {}", to_string(queued.event.key));
  post(part::engine, part::sink,
       [this, call = commit_call{queued.event.key, queued.slot}] { feed<part::sink>(call); });
  free_pages(record.pages);
}

void rank_host::commit_all() {
  std::vector<room_id> rooms;
  for (const auto& [room, what] : succeeded_) rooms.push_back(room);
  for (auto room : rooms) commit(room);
}

void rank_host::abort(room_id room, const std::string& why) {
  abort_call call{room, {errc::aborted, why, {}}};
  k_.trace(name(), "aborts room {}: {}", room.value, why);
  if (knows(room_side::source, room))
    post(part::engine, part::source, [this, call] { feed<part::source>(call); });
  if (knows(room_side::sink, room)) post(part::engine, part::sink, [this, call] { feed<part::sink>(call); });
  const auto i = succeeded_.find(room);
  if (i == succeeded_.end()) return;
  const auto [queued, record] = std::move(i->second);
  succeeded_.erase(i);
  clear_stamp(memory_.sink_rows().subspan(std::size_t{queued.slot.value} * row_schema::row_bytes,
                                          row_schema::row_bytes));
  post(part::engine, part::sink,
       [this, given_up = commit_call{queued.event.key, queued.slot}] { feed<part::sink>(given_up); });
  free_pages(record.pages);
}

void rank_host::quiesce(room_id room) {
  for (auto side : {room_side::source, room_side::sink}) {
    const auto to = side == room_side::source ? part::source : part::sink;
    post(part::engine, to, [this, side, room] {
      const bool quiet = side == room_side::source ? source_.quiet({room}) : sink_.quiet({room});
      ++k_.counts.other[quiet ? "quiesce: quiet" : "quiesce: not yet"];
      if (quiet && exposed_[number(side)].contains(room))
        k_.violate(name(), "room {} is said to be quiet and is not released", room.value);
    });
  }
}

// -- pages -------------------------------------------------------------------------------------------------

std::optional<std::vector<std::vector<page_id>>> rank_host::allocate(std::uint64_t tokens) {
  std::vector<std::vector<page_id>> out;
  const auto& layout = *memory_.layout();
  for (std::size_t c = 0; c < free_.size(); ++c)
    if (free_[c].size() < (tokens + layout.components[c].page_tokens - 1) / layout.components[c].page_tokens)
      return {};
  for (std::size_t c = 0; c < free_.size(); ++c) {
    auto& pages = out.emplace_back();
    for (std::uint64_t t = 0; t < tokens; t += layout.components[c].page_tokens) {
      const bool front = k_.random.chance(0.7);
      pages.push_back(front ? free_[c].front() : free_[c].back());
      front ? free_[c].pop_front() : free_[c].pop_back();
    }
  }
  return out;
}

void rank_host::free_pages(const std::vector<std::vector<page_id>>& pages) {
  for (std::size_t c = 0; c < pages.size(); ++c) {
    memory_.poison({static_cast<std::uint16_t>(c)}, pages[c]);
    for (auto page : pages[c]) k_.random.chance(0.5) ? free_[c].push_back(page) : free_[c].push_front(page);
  }
}

// -- events ------------------------------------------------------------------------------------------------

void rank_host::events_port::push(room_side side, const queued_event& event) {
  const auto* room = me.find(side, event.event.key.room);
  if (me.settings_.planted && event.event.what == room_event::kind::released && side == room_side::sink &&
      room != nullptr && room->code == errc::aborted)
    return;
  me.check_event(side, event);
}

bool rank_host::events_port::backlogged(room_side side) const {
  return !me.backlog_[number(side)].empty();
}

void rank_host::events_port::flush(room_side side) {
  auto& backlog = me.backlog_[number(side)];
  while (!backlog.empty() && me.queue_.size() < me.settings_.events_max) {
    me.queue_.push_back(std::move(backlog.front()));
    backlog.pop_front();
  }
  if (!me.queue_.empty() && !me.take_pending_) {
    me.take_pending_ = true;
    me.later(me.stall_ + me.k_.random.between(10us, 400us), [this] { me.take_events(); });
  }
}

void rank_host::take_events() {
  take_pending_ = false;
  auto taken = std::exchange(queue_, {});
  for (auto& [queued, record] : taken) {
    if (queued.event.side == room_side::sink && queued.event.what == room_event::kind::verdict &&
        queued.event.poll == kv_poll::success)
      succeeded_[queued.event.key.room] = {queued, record};
    logic_.on_event(*this, record, queued);
  }
}

}  // namespace handoff::sim
