#include "tools/replay/room_driver.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace handoff::replay {

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

metadata_row row_of(std::uint64_t seed, room_id room, std::uint64_t tokens) {
  const auto bits = mix(mix(seed ^ 0x4d45544144415441) + room.value);
  const auto cached = static_cast<std::uint32_t>(tokens);
  return {static_cast<std::int32_t>(bits >> 33), cached, cached / 2, cached / 4, cached / 8};
}

void room_driver::start(const room_order& order) {
  auto owned = std::make_unique<room>();
  auto& r = *owned;
  r.place.room = {order.room};
  r.place.tokens = order.tokens;
  r.outcome.room = order.room;
  r.source = order.source;
  r.order = started_++;
  r.deadline_ns = now_ns() + std::uint64_t{context_.setup.timeout_s} * 1'000'000'000;
  if (!rooms_.emplace(order.room, std::move(owned)).second) {
    room_outcome twice;
    twice.room = order.room;
    twice.failure = to_string(errc::room_duplicate);
    twice.reason = "the router started this room while it runs";
    return context_.report(twice);
  }
  waiting_.push_back(&r);
}

bool room_driver::try_begin(room& r) {
  auto pages = context_.pages.allocate(context_.oracle.pages_for(r.place.tokens), r.place.room);
  if (!pages) return false;
  r.outcome.pages = pages->size();
  r.place = context_.oracle.place(r.place.room, r.place.tokens, std::move(*pages));
  begin(r);
  return true;
}

void room_driver::take(const room_event& event) {
  const auto it = rooms_.find(event.key.room.value);
  if (it == rooms_.end()) return;
  auto& r = *it->second;
  if (event.what == room_event::kind::released) {
    r.released = true;
  } else {
    r.verdict = event.poll;
    if (event.poll == kv_poll::failed) note_failure(r, {event.code, event.reason.data(), {}});
    if (event.poll == kv_poll::success) r.outcome.succeeded_ns = now_ns();
  }
  changed(r, event);
}

bool room_driver::work() {
  while (!waiting_.empty() && try_begin(*waiting_.front())) waiting_.pop_front();
  if (!waiting_.empty() && now_ns() > waiting_.front()->deadline_ns) {
    auto& r = *waiting_.front();
    waiting_.pop_front();
    note_failure(r, {errc::limit_exceeded,
                     fmt::format("{} pages did not become free within {} s; {} of {} are free",
                                 context_.oracle.pages_for(r.place.tokens), context_.setup.timeout_s,
                                 context_.pages.available(), context_.pages.total()),
                     {}});
    leave(r);
  }
  if (sweeping_.empty()) return false;

  auto& r = *sweeping_.front();
  const auto items = context_.oracle.items(r.place.pages.size());
  const auto item_bytes = context_.oracle.memory().buffers().front().item_bytes;
  const auto piece = std::max<std::uint64_t>(1, work_bytes / item_bytes);
  const auto end = std::min(items, r.next_item + piece);
  for (; r.next_item < end; ++r.next_item) r.visit(r.next_item);
  if (r.next_item < items) {
    std::rotate(sweeping_.begin(), sweeping_.begin() + 1, sweeping_.end());
  } else {
    sweeping_.pop_front();
    std::exchange(r.then, nullptr)();
  }
  return true;
}

void room_driver::sweep(room& r, std::function<void(std::uint64_t item)> visit, std::function<void()> then) {
  r.visit = std::move(visit);
  r.then = std::move(then);
  r.next_item = 0;
  sweeping_.push_back(&r);
}

void room_driver::note_failure(room& r, const error& reason) {
  if (!r.outcome.failure.empty()) return;
  r.outcome.failure = to_string(reason.code);
  r.outcome.reason = reason.detail;
}

void room_driver::note_finding(room& r, std::string text) {
  if (r.outcome.findings.empty()) r.outcome.findings.push_back(std::move(text));
}

void room_driver::finish(room& r) {
  r.finishing = true;
  sweep(
      r, [&r, this](std::uint64_t item) { context_.oracle.poison(r.place, item); },
      [&r, this] {
        if (auto e = context_.pages.release(r.place.pages, r.place.room)) note_finding(r, e.detail);
        leave(r);
      });
}

void room_driver::leave(room& r) {
  context_.report(r.outcome);
  rooms_.erase(r.place.room.value);
}

std::span<const page_span> room_driver::spans(const room& r) {
  span_ = {context_.component, 0, r.place.pages, 0};
  return {&span_, 1};
}

}  // namespace handoff::replay
