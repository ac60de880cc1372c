#include "actors/room/room_desk.hpp"

#include <algorithm>

namespace handoff {
namespace {

std::vector<std::uint64_t> pages_of(const layout_descriptor& layout) {
  std::vector<std::uint64_t> pages;
  for (const auto& component : layout.components)
    pages.push_back(component.kind == component_kind::metadata ? 0 : component.pages);
  return pages;
}

}  // namespace

room_desk::room_desk(room_side side, room_desk_settings settings)
    : leases(pages_of(*settings.layout), settings.lease_events),
      slots(settings.slots),
      graves(settings.tombstones_max, settings.tombstone_time),
      gate(1, std::size_t{settings.rooms_max} + 1),  // one more: for the room that is refused at the limit
      side_(side),
      settings_(std::move(settings)) {}

void room_desk::verdict(room_key key, const verdict_effect& effect, slot_id slot) {
  auto passed = gate.vote({key, 0, effect.poll, effect.reason, effect.proven_tokens});
  if (!passed) {
    settings_.log.error("gate-refused", "{}: {}", to_string(key), to_string(passed.error()));
    return;
  }
  if (!*passed) return;
  push(key, room_event::kind::verdict, **passed, slot);
  if ((*passed)->poll == kv_poll::success) ++succeeded_;
  if ((*passed)->poll == kv_poll::failed) {
    ++failed_;
    settings_.log.warn("room-failed", "{} ({}): {}", to_string(key),
                       side_ == room_side::source ? "source" : "sink", to_string((*passed)->reason));
  }
}

void room_desk::released(room_key key) {
  push(key, room_event::kind::released, {}, {});
}

void room_desk::reject(room_key key, const error& reason) {
  verdict(key, {kv_poll::failed, reason, {}}, {});
  released(key);
  gate.forget(key);
}

void room_desk::push(room_key key, room_event::kind what, const gate_verdict& verdict, slot_id slot) {
  queued_event queued;
  queued.slot = slot;
  auto& e = queued.event;
  e.what = what;
  e.side = side_;
  e.poll = verdict.poll;
  e.code = verdict.reason.code;
  e.key = key;
  e.proven_tokens = verdict.proven_tokens;
  if (verdict.reason) {
    auto text = to_string(verdict.reason);
    std::copy_n(text.begin(), std::min(text.size(), e.reason.size() - 1), e.reason.begin());
  }
  settings_.events->push(side_, queued);
}

time_point room_desk::next_deadline(time_point now) const {
  auto next = timers.next();
  return congested() ? std::min(next, now + duration(std::chrono::milliseconds(10))) : next;
}

std::span<std::byte> room_desk::row(slot_id slot) const {
  return settings_.rows.subspan(std::size_t{slot.value} * row_schema::row_bytes, row_schema::row_bytes);
}

void room_desk::count_into(status_part& part) const {
  auto l = leases.counts();
  part.counts.insert(part.counts.end(), {{"rooms_succeeded", succeeded_},
                                         {"rooms_failed", failed_},
                                         {"tombstones", graves.size()},
                                         {"leases", l.leases},
                                         {"leased_pages", l.pages},
                                         {"quarantined", l.quarantined},
                                         {"slots_used", slots.used()}});
}

}  // namespace handoff
