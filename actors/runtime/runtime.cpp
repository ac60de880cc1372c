// The engine's calls: arguments are checked here, on the engine's thread; the work is handed to the actors.
#include "actors/runtime/composition.hpp"
#include "actors/runtime/runtime_impl.hpp"
#include "transport/layout/plan.hpp"

#include <algorithm>

namespace handoff {

// -- the whole runtime --------------------------------------------------------------------------------------

error runtime::drain(std::chrono::milliseconds deadline) {
  auto& s = *impl_;
  if (s.closed || !s.drainer) return {};
  error result;
  caf::scoped_actor self{*s.system};
  self->request(s.drainer, deadline + 2 * from_ms(s.options.config.timeouts.status_ms), drain_call{deadline})
      .receive([&](const drain_outcome& outcome) { result = outcome.reason; },
               [&](const caf::error&) {
                 result = {errc::timed_out, "the runtime's actors do not answer", {}};
               });
  return result;
}

std::string runtime::endpoint() const {
  return impl_->bootstrap_address;
}
std::string runtime::control_address() const {
  return impl_->control_address;
}

// -- rooms -------------------------------------------------------------------------------------------------

namespace {

std::vector<component_pages> to_runs(std::span<const page_span> spans) {
  std::vector<component_pages> result;
  for (const auto& span : spans) {
    component_pages pages{span.component, span.first_token, span.prefix_tokens, {}};
    for (auto page : span.pages) {
      auto& runs = pages.runs;
      if (!runs.empty() && runs.back().first.value + runs.back().count == page.value)
        ++runs.back().count;
      else
        runs.push_back({page, 1});
    }
    result.push_back(std::move(pages));
  }
  return result;
}

error not_serving(bool started, bool closed) {
  if (closed) return {errc::closed, "the runtime is closed", {}};
  if (!started) return {errc::room_state, "start comes before rooms", {}};
  return {};
}

error check_label(std::string_view label) {
  if (label.size() <= limits::label_bytes) return {};
  return {errc::invalid_argument,
          fmt::format("a label of {} bytes; at most {}", label.size(), limits::label_bytes),
          {}};
}

error check_spans(const layout_descriptor& layout, std::span<const page_span> pages, std::uint64_t tokens) {
  return layout::check_pages(layout, to_runs(pages), tokens);
}

}  // namespace

error runtime::offer(room_id room, std::span<const page_span> pages, std::uint64_t tokens,
                     std::chrono::milliseconds lease, std::string_view label) {
  auto& s = *impl_;
  if (auto bad = not_serving(s.started, s.closed)) return bad;
  if (auto bad = check_label(label)) return bad;
  if (auto bad = check_spans(*s.layout, pages, tokens)) return bad;
  if (s.busy(room_side::source, room))
    return {errc::room_duplicate, fmt::format("room {} is offered here already", room.value), {}};
  s.active[0].insert(room);
  tell(s.prefill, offer_call{room, to_runs(pages), tokens, lease, std::string(label)});
  return {};
}

error runtime::send(room_id room, const chunk& what, const metadata_row* row) {
  auto& s = *impl_;
  if (s.closed) return {errc::closed, "the runtime is closed", {}};
  if (!s.busy(room_side::source, room))
    return {errc::room_unknown, fmt::format("room {} was not offered", room.value), {}};
  if (what.last != (row != nullptr))
    return {errc::invalid_argument, "the metadata row comes with the last chunk, and only with it", {}};
  if (what.first_token > what.last_token || what.first_layer > what.last_layer)
    return {errc::invalid_argument,
            fmt::format("tokens [{}, {}) of layers [{}, {}) are no range", what.first_token, what.last_token,
                        what.first_layer, what.last_layer),
            {}};
  send_call call{room, {what.first_token, what.last_token, what.first_layer, what.last_layer}, what.last, {}};
  if (row) call.row = *row;
  tell(s.prefill, call);
  return {};
}

error runtime::announce(room_id room, std::string_view peer, std::string_view label) {
  auto& s = *impl_;
  if (auto bad = not_serving(s.started, s.closed)) return bad;
  if (auto bad = check_label(label)) return bad;
  if (peer.empty())
    return {errc::invalid_argument, "announce needs the source's bootstrap endpoint or name", {}};
  if (s.busy(room_side::sink, room))
    return {errc::room_duplicate, fmt::format("room {} is announced here already", room.value), {}};
  if (s.succeeded.contains(room))
    return {errc::room_duplicate, fmt::format("room {} succeeded and was not committed yet", room.value), {}};
  s.active[1].insert(room);
  tell(s.decode, announce_call{room, std::string(peer), std::string(label)});
  return {};
}

error runtime::publish(room_id room, std::span<const page_span> pages, std::uint64_t tokens) {
  auto& s = *impl_;
  if (s.closed) return {errc::closed, "the runtime is closed", {}};
  if (!s.busy(room_side::sink, room))
    return {errc::room_unknown, fmt::format("room {} was not announced", room.value), {}};
  if (auto bad = check_spans(*s.layout, pages, tokens)) return bad;
  tell(s.decode, publish_call{room, to_runs(pages), tokens});
  return {};
}

error runtime::commit(room_id room, metadata_row& row) {
  auto& s = *impl_;
  auto i = s.succeeded.find(room);
  if (i == s.succeeded.end())
    return {errc::room_state, fmt::format("room {} has no success to commit", room.value), {}};
  auto [event, slot] = i->second;
  s.succeeded.erase(i);
  auto memory = s.sink_row(slot);
  auto read = read_row(memory, event.key);
  clear_stamp(memory);
  if (!s.closed) tell(s.decode, commit_call{event.key, slot});
  if (!read) return read.error();
  row = *read;
  return {};
}

std::size_t runtime::take_events(std::span<room_event> out) {
  auto& s = *impl_;
  std::size_t count = 0;
  queued_event queued;
  while (count < out.size() && s.events->pop(queued)) {
    const auto& e = queued.event;
    if (e.what == room_event::kind::released)
      s.active[e.side == room_side::sink].erase(e.key.room);
    else if (e.side == room_side::sink && e.poll == kv_poll::success)
      s.succeeded[e.key.room] = queued;
    out[count++] = e;
  }
  return count;
}

bool runtime::arm() {
  return impl_->events->arm();
}
int runtime::wait_fd() const {
  return impl_->events->wait_fd();
}

error runtime::abort(room_id room, std::string_view reason) {
  auto& s = *impl_;
  if (s.closed || !s.started || !s.prefill) return {};
  abort_call call{room, {errc::aborted, std::string(reason.substr(0, limits::error_detail_bytes)), {}}};
  if (s.busy(room_side::source, room)) tell(s.prefill, call);
  if (s.busy(room_side::sink, room)) tell(s.decode, call);
  if (auto i = s.succeeded.find(room); i != s.succeeded.end()) {  // its row is given up unread
    auto [event, slot] = i->second;
    s.succeeded.erase(i);
    clear_stamp(s.sink_row(slot));
    tell(s.decode, commit_call{event.key, slot});
  }
  return {};
}

bool runtime::quiesce(room_id room, std::chrono::milliseconds deadline) {
  auto& s = *impl_;
  if (s.closed || !s.started || !s.prefill) return true;
  return s.quiet({room, false}, deadline);
}

/// Both sides are asked one after the other, so the bound holds for each: a room has one side here, or ends
/// on both.
bool runtime::impl::quiet(const quiesce_call& call, std::chrono::milliseconds deadline) {
  caf::scoped_actor self{*system};
  bool quiet = true;
  auto silent = [&](const caf::error&) { quiet = false; };
  self->request(prefill, deadline, call).receive([&](bool q) { quiet = quiet && q; }, silent);
  self->request(decode, deadline, call).receive([&](bool q) { quiet = quiet && q; }, silent);
  return quiet;
}

// -- status ------------------------------------------------------------------------------------------------

status_report runtime::impl::ask_status() {
  status_report report;
  if (!monitor) return report;
  caf::scoped_actor self{*system};
  self->request(monitor, 2 * from_ms(options.config.timeouts.status_ms), status_call{})
      .receive([&](status_report& r) { report = std::move(r); },
               [&](const caf::error&) { report.silent.emplace_back("monitor"); });
  return report;
}

runtime_status runtime::status() {
  runtime_status result;
  auto report = impl_->ask_status();
  std::unordered_map<std::string, std::uint64_t> sums;
  for (const auto& part : report.parts) {
    for (const auto& [name, value] : part.counts) sums[name] += value;
    if (part.actor == "transfer_engine") {
      result.peer_texts = part.lines;
      for (const auto& [name, value] : part.counts)
        if (name == "peers") result.peers = value;
    }
  }
  result.actors = impl_->system ? impl_->system->registry().running() : 0;
  result.rooms = sums["rooms"];
  result.rooms_succeeded = sums["rooms_succeeded"];
  result.rooms_failed = sums["rooms_failed"];
  result.tombstones = sums["tombstones"];
  result.leases = sums["leases"];
  result.leased_pages = sums["leased_pages"];
  result.quarantined = sums["quarantined"];
  result.slots_used = sums["slots_used"];
  result.transfers_active = sums["transfers_active"];
  result.registrations = sums["registrations"];
  result.frames_queued = sums["frames_queued"];
  result.bytes_written = sums["bytes_written"];
  result.writes_posted = sums["writes_posted"];
  result.frames_sent = sums["frames_sent"];
  result.frames_received = sums["frames_received"];
  result.frames_dropped = sums["frames_dropped"];
  for (std::size_t i = 0; i < failure_kind_count; ++i)
    result.injected[i] = sums[fmt::format("injected_{}", failure_kind_names[i])];
  for (const auto& name : report.silent) result.peer_texts.push_back(fmt::format("actor {} is silent", name));
  return result;
}

}  // namespace handoff
