// What must hold, checked where it can break: at each landing write, each event for the engine, after each
// step of the rooms, and at the end.
#include "tools/sim/rank_host.hpp"

#include <cstring>

namespace handoff::sim {
namespace {

std::string_view text(room_side side) {
  return side == room_side::source ? "source" : "sink";
}

std::uint64_t count(const status_part& part, std::string_view name) {
  for (const auto& [key, value] : part.counts)
    if (key == name) return value;
  return 0;
}

}  // namespace

// -- writes ------------------------------------------------------------------------------------------------

/// Every word that lands must be one of the room and attempt that the page is leased to, in its own place.
void rank_host::check_landing(std::span<std::byte> target, std::span<const std::byte> source) {
  const auto first = memory_.find(target.data());
  if (!first) return;  // the transport's own
  if (first->row) return check_landing_row(*first, source);
  const auto& layout = memory_.layout()->buffers[first->buffer];
  std::uint64_t item = first->item, token = first->token;
  for (std::size_t at = 0; at < source.size(); at += word_bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, source.data() + at, sizeof bits);
    const page_id page{static_cast<std::uint32_t>(item)};
    const auto holder = sink_.desk().leases.holder(layout.component, page);
    const auto where = [&] {
      return fmt::format("page {} token {} of buffer {}", item, token, first->buffer);
    };
    const auto w = word::of(bits);
    if (!holder || holder->state == lease_state::reserved)
      return k_.violate(name(), "a write landed in {}, which is leased to nobody", where());
    if (!w) return k_.violate(name(), "bytes of a page that was free landed in {}", where());
    const auto& offer = offers_[w->offer];
    if (offer.room != holder->key.room || offer.attempt != holder->key.attempt)
      return k_.violate(name(), "bytes of room {} attempt {} landed in {}, leased to {}", offer.room.value,
                        offer.attempt.value, where(), to_string(holder->key));
    const auto* room = find(room_side::sink, holder->key.room);
    if (room == nullptr || room->pages.empty())
      return k_.violate(name(), "{} is leased to {}, which its engine has been told is over", where(),
                        to_string(holder->key));
    const auto& pages = room->pages[layout.component.value];
    const auto number =
        static_cast<std::uint64_t>(std::find(pages.begin(), pages.end(), page) - pages.begin());
    if (w->buffer != first->buffer || w->token != number * layout.page_tokens + token ||
        w->token < room->prefix || w->token >= room->tokens)
      return k_.violate(name(), "token {} of buffer {} landed in {} of {}", w->token, w->buffer, where(),
                        to_string(holder->key));
    if (++token == layout.page_tokens) token = 0, ++item;
  }
  ++k_.counts.other["writes landed and checked"];
}

void rank_host::check_landing_row(const place& at, std::span<const std::byte> source) {
  const slot_id slot{static_cast<std::uint32_t>(at.item)};
  const auto owner = sink_.desk().slots.owner(slot);
  if (!owner) return k_.violate(name(), "a row landed in slot {}, which is free", slot.value);
  if (auto row = read_row(source, *owner); !row)
    return k_.violate(name(), "a row landed in slot {} of {}: {}", slot.value, to_string(*owner),
                      to_string(row.error()));
  const auto* room = find(room_side::sink, owner->room);
  if (room == nullptr || room->poll == kv_poll::success)
    k_.violate(name(), "a row landed in slot {} after {} had succeeded", slot.value, to_string(*owner));
}

// -- events for the engine ---------------------------------------------------------------------------------

void rank_host::check_event(room_side side, const queued_event& queued) {
  const auto& e = queued.event;
  auto& calls = calls_[number(side)];
  const auto i = calls.find(e.key.room);
  const bool released = e.what == room_event::kind::released;
  k_.trace(name(), "{} ({}): {}{}", to_string(e.key), text(side), released ? "released" : to_string(e.poll),
           e.poll == kv_poll::failed && !released ? std::string(": ") + e.reason.data() : std::string());
  if (i == calls.end())
    return k_.violate(name(), "{} ({}): {} for a room that is over", to_string(e.key), text(side),
                      released ? "released" : to_string(e.poll));
  auto& room = i->second;
  if (side == room_side::source && e.key.attempt.value != 0) offers_[room.offer].attempt = e.key.attempt;
  room.key = e.key;
  if (!released) {
    if (is_terminal(room.poll) || (e.poll != kv_poll::failed && e.poll <= room.poll))
      k_.violate(name(), "{} ({}): {} after {}", to_string(e.key), text(side), to_string(e.poll),
                 to_string(room.poll));
    room.poll = e.poll;
    room.ended = k_.now();
    room.code = e.code;
    room.reason = e.reason.data();
    if (side == room_side::sink && e.poll == kv_poll::success) check_success(room, queued.slot);
    if (side == room_side::sink && e.poll == kv_poll::failed && !room.pages.empty())
      check_proven(room, e.proven_tokens);
  } else {
    if (!is_terminal(room.poll))
      k_.violate(name(), "{} ({}): released before it ended", to_string(e.key), text(side));
    const auto took = now() - room.since - (not_awake() - room.not_awake);
    if (took > room.bound)
      k_.violate(name(), "{} ({}): ended after {} ms, its bound is {} ms", to_string(e.key), text(side),
                 took / 1ms, room.bound / 1ms);
    exposed_[number(side)].erase(e.key.room);
    ends_.push_back({side, room.plan, e.key, room.offer, room.poll, room.code, room.reason, room.ended});
    // The engine may use them again at once, and a reader or writer that is left is found out.
    if (side == room_side::source || room.poll == kv_poll::failed) free_pages(room.pages);
  }
  auto record = room;
  if (released) calls.erase(i);
  auto& backlog = backlog_[number(side)];
  backlog.emplace_back(queued, std::move(record));
  events_->flush(side);
}

/// Coverage, byte by byte: all that the room owed is here and of one offer; the row is of this attempt.
void rank_host::check_success(engine_room& room, slot_id slot) {
  const auto row = read_row(
      memory_.sink_rows().subspan(std::size_t{slot.value} * row_schema::row_bytes, row_schema::row_bytes),
      room.key);
  if (!row) return k_.violate(name(), "{} succeeded: {}", to_string(room.key), to_string(row.error()));
  room.offer = static_cast<std::uint16_t>(row->first_token);
  for (std::size_t b = 0; b < memory_.buffers(); ++b) {
    const auto& layout = memory_.layout()->buffers[b];
    for (auto t = room.prefix; t < room.tokens; ++t) {
      const auto bits =
          memory_.read(b, room.pages[layout.component.value][t / layout.page_tokens], t % layout.page_tokens);
      const word wanted{static_cast<std::uint16_t>(row->first_token), static_cast<std::uint16_t>(t),
                        static_cast<std::uint16_t>(b)};
      if (bits != wanted.packed())
        return k_.violate(name(), "{} succeeded, but token {} of buffer {} is {:#x} instead of {:#x}",
                          to_string(room.key), t, b, bits, wanted.packed());
    }
  }
  ++k_.counts.other["successes compared word by word"];
}

/// What a failed room is told to have is there, in every buffer.
void rank_host::check_proven(const engine_room& room, const proven_by_component& proven) {
  for (std::size_t b = 0; b < memory_.buffers(); ++b) {
    const auto& layout = memory_.layout()->buffers[b];
    const auto end = room.prefix + proven[layout.component.value];
    for (auto t = room.prefix; t < end; ++t) {
      const auto bits =
          memory_.read(b, room.pages[layout.component.value][t / layout.page_tokens], t % layout.page_tokens);
      const auto w = word::of(bits);
      if (w && w->token == t && w->buffer == b && offers_[w->offer].room == room.key.room) continue;
      return k_.violate(name(), "{} failed with tokens [{}, {}) proven, but token {} of buffer {} is {:#x}",
                        to_string(room.key), room.prefix, end, t, b, bits);
    }
    k_.counts.other["proven words of failed rooms compared"] += end - room.prefix;
  }
}

// -- always ------------------------------------------------------------------------------------------------

void rank_host::note_submit(const submit_call& call) {
  const auto& t = call.what;
  std::optional<room_id> room;
  if (!t.blocks.empty()) {
    const auto at =
        memory_.find(memory_.region(t.blocks.front().local.value).data() + t.blocks.front().local_offset);
    const auto& layout = memory_.layout()->buffers[at->buffer];
    if (const auto holder =
            source_.desk().leases.holder(layout.component, {static_cast<std::uint32_t>(at->item)}))
      room = holder->key.room;
  } else if (!t.last_blocks.empty()) {
    const slot_id slot{
        static_cast<std::uint32_t>(t.last_blocks.front().local_offset / row_schema::row_bytes)};
    if (const auto owner = source_.desk().slots.owner(slot)) room = owner->room;
  }
  if (room)
    exposed_[0].insert(*room);
  else
    k_.violate(name(), "transfer {} reads pages or a row that nobody holds", t.id.value);
}

void rank_host::check_gate() {
  if (source_.desk().leases.move_gate_open() != exposed_[0].empty())
    k_.violate(name(), "the source's move gate is {} with {} rooms exposed",
               exposed_[0].empty() ? "shut" : "open", exposed_[0].size());
  if (sink_.desk().leases.move_gate_open() != exposed_[1].empty())
    k_.violate(name(), "the sink's move gate is {} with {} rooms exposed",
               exposed_[1].empty() ? "shut" : "open", exposed_[1].size());
}

/// A source that has seen a newer attempt is no longer in an older one.
void rank_host::check_superseded(const room_message& message) {
  if (std::holds_alternative<room_result_message>(message)) return;
  const auto key = std::visit([](const auto& m) { return m.key; }, message);
  const auto* room = find(room_side::source, key.room);
  if (room != nullptr && room->key.attempt.value != 0 && room->key.attempt < key.attempt &&
      !is_terminal(room->poll))
    k_.violate(name(), "{} goes on although attempt {} has begun", to_string(room->key), key.attempt.value);
}

// -- at the end --------------------------------------------------------------------------------------------

void rank_host::check_liveness() {
  for (auto side : {room_side::source, room_side::sink})
    for (const auto& [id, room] : calls_[number(side)])
      k_.violate(name(), "{} ({}): {} for ever: not released at the end of time", to_string(room.key),
                 text(side), to_string(room.poll));
}

void rank_host::check_baseline(const std::set<std::uint64_t>& living) {
  const auto none = [&](const status_part& part, std::initializer_list<std::string_view> counts) {
    for (auto what : counts)
      if (count(part, what) != 0)
        k_.violate(name(), "{} of {}: {} left at the end", what, part.actor, count(part, what));
  };
  none(source_.status(),
       {"rooms", "transfers", "leases", "leased_pages", "quarantined", "slots_used", "tombstones"});
  none(sink_.status(),
       {"rooms", "uncommitted", "leases", "leased_pages", "quarantined", "slots_used", "tombstones"});
  if (source_.desk().gate.rooms() + sink_.desk().gate.rooms() != 0)
    k_.violate(name(), "{} rooms left in the poll gates",
               source_.desk().gate.rooms() + sink_.desk().gate.rooms());
  const auto peers = desk_.status();
  none(peers, {"dialogues", "transfers_active", "frames_queued"});
  const auto open = transport_->current_status().peers;
  if (open != count(peers, "peers"))
    k_.violate(name(), "{} endpoints are open for {} sessions", open, count(peers, "peers"));
  for (const auto& line : peers.lines) {
    bool alive = false;
    for (auto incarnation : living)
      alive = alive || line.find(fmt::format("{:016x}", incarnation)) != line.npos;
    if (!alive) k_.violate(name(), "a session with a peer that is dead: {}", line);
  }
  if (!queue_.empty() || !backlog_[0].empty() || !backlog_[1].empty())
    k_.violate(name(), "events were left in the queue");
}

}  // namespace handoff::sim
