#include "tests/actors/machines/bare_source.hpp"

namespace handoff::testing {

struct bare_source::kept final : event_port {
  void push(room_side, const queued_event& e) override {
    if (e.event.what != room_event::kind::verdict) return;
    verdicts[e.event.key.room] = e.event.poll;
    reasons[e.event.key.room] = bare_reason(e.event.reason.data());
  }
  void flush(room_side) override {}
  bool backlogged(room_side) const override { return false; }

  std::map<room_id, kv_poll> verdicts;
  std::map<room_id, std::string> reasons;
};

bare_source::bare_source(duration unclaimed, duration remembered) : kept_(std::make_shared<kept>()) {
  constexpr std::uint32_t slots = 64;
  rig_.layout = std::make_shared<layout_descriptor>(small_layout({{.pages = 256}}, slots));
  rows_.resize(slots * row_schema::row_bytes);
  source_rooms_settings s;
  s.rooms = rig_.source;
  s.rooms.layout = rig_.layout;
  s.rooms.unclaimed_timeout = unclaimed;
  for (auto* bound :
       {&s.rooms.bootstrap_timeout, &s.rooms.send_timeout, &s.rooms.sending_timeout, &s.rooms.result_timeout})
    *bound = 24h * 365;
  s.desk.layout = rig_.layout;
  s.desk.events = kept_;
  s.desk.rows = rows_;
  s.desk.slots = slots;
  s.desk.rooms_max = slots;
  s.desk.tombstones_max = 4096;
  s.desk.tombstone_time = remembered;
  s.desk.log = logger([this](log_level, std::string_view event,
                             std::string_view) { duplicates_ += event == "room-duplicate"; },
                      log_level::info);
  rooms_ = std::make_unique<source_rooms>(std::move(s), *this);
}

// -- the engine --------------------------------------------------------------------------------------------

void bare_source::offer(room_id room) {
  auto place = pages_.emplace(room, static_cast<std::uint32_t>(pages_.size())).first->second;
  offer_call call{room, rig::pages(place * 6), tokens, {}, "request-1"};
  rooms_->handle(call, now_);
  settle();
}

void bare_source::send(room_id room, std::uint64_t first_token, std::uint64_t last_token) {
  bool last = last_token == tokens;
  const send_call call{
      room, {first_token, last_token}, last, last ? std::optional(rig::row()) : std::nullopt};
  rooms_->handle(call, now_);
  settle();
}

void bare_source::abort(room_id room, const std::string& reason) {
  const abort_call call{room, {errc::aborted, reason, {}}};
  rooms_->handle(call, now_);
  settle();
}

void bare_source::advance(duration d) {
  auto end = now_ + d;
  while (rooms_->deadline() <= end) {
    now_ = std::max(now_, rooms_->deadline());
    rooms_->tick(now_);
    settle();
  }
  now_ = end;
  rooms_->tick(now_);
}

std::optional<kv_poll> bare_source::verdict(room_id room) const {
  auto i = kept_->verdicts.find(room);
  return i == kept_->verdicts.end() ? std::nullopt : std::optional(i->second);
}
std::string bare_source::reason(room_id room) const {
  auto i = kept_->reasons.find(room);
  return i == kept_->reasons.end() ? std::string() : i->second;
}
void bare_source::forget(room_id room) {
  kept_->verdicts.erase(room);
  kept_->reasons.erase(room);
}

bool bare_source::baseline() const {
  return rooms_->desk().leases.counts() == lease_counts{} && rooms_->desk().slots.used() == 0 &&
         rooms_->desk().gate.rooms() == 0;
}

// -- the sinks ---------------------------------------------------------------------------------------------

peer_view bare_source::view(const std::string& who) {
  auto number = peers_.emplace(who, static_cast<std::uint32_t>(peers_.size())).first->second;
  auto v = rig_.decode(number);
  v.layout = rig_.layout;
  names_[v.peer] = who;
  return v;
}

void bare_source::frame(const std::string& who, room_message message) {
  const room_frame f{view(who), std::move(message)};
  rooms_->handle(f, now_);
  settle();
}

void bare_source::announce(room_key key, const std::string& who, std::size_t ranks) {
  frame(who, rig::announce(key, static_cast<std::uint16_t>(ranks)));
}
void bare_source::publish(room_key key, const std::string& who) {
  frame(who, rig::publish(key));
}
void bare_source::confirm(room_key key, const std::string& who, bool success) {
  frame(who, success ? rig::positive(key) : rig::negative(key));
}
void bare_source::peer_abort(room_key key, const std::string& who) {
  frame(who, rig::abort(false, key));
}

// -- the fabric --------------------------------------------------------------------------------------------

void bare_source::submit(submit_call call) {
  said_ += (said_.empty() ? "" : "; ") + text(submit_effect{call.what});
  if (call.what.notify) heard_.push_back({names_[call.what.peer], kv_poll::success, {}});
  submitted_.push_back(std::move(call));
}
void bare_source::send(frame_call call) {
  said_ += (said_.empty() ? "" : "; ") + text(send_effect{call.peer, call.message});
  if (const auto* m = std::get_if<abort_message>(&call.message))
    heard_.push_back({names_[call.peer], kv_poll::failed, m->reason.detail});
}

void bare_source::settle() {
  if (!held_) deliver();
}

void bare_source::deliver() {
  while (!submitted_.empty()) {
    auto done = std::exchange(submitted_, {});
    for (const auto& s : done) {
      const transfer_ended ended{{s.what.id, s.what.peer, {}, true, 0, 0, 0, 0}};
      rooms_->handle(ended, now_);
    }
  }
}

std::string bare_reason(const std::string& text) {
  auto from = text.find(": ");
  auto to = text.rfind(" (seen by");
  from = from == std::string::npos ? 0 : from + 2;
  return text.substr(from, to == std::string::npos ? to : to - from);
}

}  // namespace handoff::testing
