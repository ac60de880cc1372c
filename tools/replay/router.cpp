#include "tools/replay/router.hpp"

#include "tools/replay/process_resources.hpp"
#include "tools/replay/room_driver.hpp"
#include "tools/replay/token_scale.hpp"
#include "tools/replay/worker_config.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace handoff::replay {
namespace {

constexpr std::uint64_t progress_ns = 3'000'000'000;
/// Beyond a room's own bounds: the workers' loops and a busy machine.
constexpr std::uint32_t hung_margin_s = 10;
/// Rooms that may fail before the rest is given up.
constexpr std::uint64_t failures_max = 20;
/// How long processes may take to end once the replay has failed.
constexpr std::chrono::milliseconds hurry{2'000};

}  // namespace

router::router(replay_plan plan, int interrupt_fd, std::function<void(const std::string&)> say)
    : plan_(std::move(plan)),
      say_(std::move(say)),
      workers_(interrupt_fd, std::chrono::seconds(plan_.silence_s)),
      random_(plan_.seed) {}

error router::run(replay_report& report) {
  report_ = &report;
  report.requests = plan_.tokens.size();
  error problem = start_workers();
  started_ns_ = told_ns_ = now_ns();
  if (!problem) problem = replay_rooms();
  report.elapsed_ns = now_ns() - started_ns_;
  if (!problem) problem = finish();
  if (const auto ends = workers_.stop(problem ? hurry : worker_group::patience); !ends.empty() && !problem)
    problem = {errc::peer_gone, ends, {}};
  if (!problem) check_shm();
  // A clean run must never pass for "the oracles see this harm".
  if (!problem && plan_.sabotage != sabotage_kind::none && is_clean(report))
    find(fmt::format(
        "sabotage {} left no trace: it was not applied (it waits for several transfers that fit it: try more "
        "requests or a larger token scale), or no oracle saw it",
        to_string(plan_.sabotage)));
  return problem;
}

// -- processes ---------------------------------------------------------------------------------------------

error router::start_workers() {
  std::string bootstrap, endpoint;
  if (auto e = start_worker(engine_role::bootstrap, "")) return e;
  if (auto e = wait_ready(engine_role::bootstrap, bootstrap)) return e;
  for (const auto role : {engine_role::prefill, engine_role::decode})
    if (auto e = start_worker(role, bootstrap)) return e;
  for (const auto role : {engine_role::prefill, engine_role::decode})
    if (auto e = wait_ready(role, endpoint)) return e;
  return {};
}

error router::start_worker(engine_role role, const std::string& bootstrap) {
  worker_setup setup;
  setup.role = role;
  setup.model = plan_.model;
  setup.provider = plan_.provider;
  setup.bootstrap = bootstrap;
  setup.source = engine_name(engine_role::prefill);
  setup.page_tokens = plan_.page_tokens;
  setup.pages = plan_.pool_pages;
  setup.timeout_s = plan_.timeout_s;
  setup.seed = plan_.seed;
  setup.sabotage = plan_.sabotage;
  return workers_.start(setup);
}

error router::wait_ready(engine_role role, std::string& endpoint) {
  const auto line = workers_.expect(role, kind::ready);
  if (!line) return line.error();
  const auto ready = body_of<ready_note>(*line);
  if (!ready) return ready.error();
  endpoint = ready->endpoint;
  say_(fmt::format("{:<9} ready, pid {}, {}", to_string(role), workers_.pid(role), ready->control_address));
  return {};
}

error router::mark() {
  for (const auto role : {engine_role::prefill, engine_role::decode}) {
    if (auto e = workers_.send(role, make_line(kind::mark))) return e;
    if (const auto line = workers_.expect(role, kind::marked); !line) return line.error();
  }
  return {};
}

error router::finish() {
  for (const auto role : {engine_role::prefill, engine_role::decode})
    if (auto e = workers_.send(role, make_line(kind::finish))) return e;
  std::array<std::optional<worker_summary>, 2> summaries;
  while (!summaries[0] || !summaries[1]) {
    const auto lines = workers_.wait(std::chrono::seconds(1));
    if (!lines) return lines.error();
    for (const auto& m : *lines) {
      if (m.line.kind != kind::summary) continue;
      auto summary = body_of<worker_summary>(m.line);
      if (!summary) return summary.error();
      summaries[m.role == engine_role::prefill ? 0 : 1] = std::move(*summary);
    }
  }
  for (const auto& summary : summaries) {
    report_->leaks += summary->leaks.size();
    for (const auto& text : summary->leaks) find("leak: " + text);
    for (const auto& text : summary->findings) find(text);
    shm_names_.insert(shm_names_.end(), summary->shm_names.begin(), summary->shm_names.end());
  }
  report_->connections = summaries[0]->connections;
  report_->bytes_written = summaries[0]->bytes_written;
  report_->writes = summaries[0]->writes;
  return {};
}

/// What the ended processes left in /dev/shm.
void router::check_shm() {
  for (const auto& name : remaining_shm_names(shm_names_)) {
    ++report_->leaks;
    find(fmt::format("leak: /dev/shm/{} is left behind", name));
  }
}

// -- rooms -------------------------------------------------------------------------------------------------

/// The first request alone: it makes connections and whatever else is made once; counts are taken after it.
error router::replay_rooms() {
  for (std::uint64_t i = 0; i < plan_.tokens.size(); ++i) {
    if (auto e = start_room(i)) return e;
    if (auto e = wait_below(i == 0 ? 1 : plan_.concurrency)) return e;
    if (i > 0) continue;
    if (auto e = mark()) return e;
    say_(fmt::format("the first request is through, {} others follow", plan_.tokens.size() - 1));
  }
  return wait_below(1);
}

/// Any 64-bit value is legal, 0 too; so the first is 0.
room_id router::next_room(std::uint64_t index) {
  if (index == 0) return {0};
  while (true) {
    const room_id room{random_()};
    if (room.value != 0 && !flights_.contains(room.value)) return room;
  }
}

error router::start_room(std::uint64_t index) {
  const auto room = next_room(index);
  const auto tokens = plan_.tokens[index];
  auto& f = flights_[room.value];
  f.tokens = tokens;
  f.deadline_ns = now_ns() + std::uint64_t{room_life_s(plan_.timeout_s) + hung_margin_s} * 1'000'000'000;
  const auto line = make_line(kind::start, room_order{room.value, tokens, {}});
  // Either side may hear of a room first.
  std::array roles{engine_role::prefill, engine_role::decode};
  if (random_() % 2 == 0) std::swap(roles[0], roles[1]);
  for (const auto role : roles)
    if (auto e = workers_.send(role, line)) return e;
  return {};
}

error router::wait_below(std::size_t active) {
  while (flights_.size() >= active) {
    const auto lines = workers_.wait(std::chrono::milliseconds(500));
    if (!lines)
      return {lines.error().code,
              fmt::format("{}; {} of {} requests had ended, {} were under way", lines.error().detail,
                          ended_rooms_, plan_.tokens.size(), flights_.size()),
              {}};
    for (const auto& m : *lines)
      if (auto e = take(m)) return e;
    if (auto e = check_hung()) return e;
    progress();
  }
  return {};
}

error router::take(const worker_group::message& m) {
  if (m.line.kind != kind::room) return {};
  const auto outcome = body_of<room_outcome>(m.line);
  if (!outcome) return outcome.error();
  const auto it = flights_.find(outcome->room);
  if (it == flights_.end())
    return {errc::internal,
            fmt::format("the {} process told the end of room {} twice", to_string(m.role), outcome->room),
            {}};
  auto& f = it->second;
  (m.role == engine_role::prefill ? f.source : f.sink) = *outcome;
  if (!f.source || !f.sink) return {};
  settle(outcome->room, f);
  flights_.erase(it);
  std::uint64_t failed = 0;
  for (const auto& [reason, count] : report_->failures) failed += count;
  if (failed < failures_max) return {};
  return {errc::limit_exceeded, fmt::format("{} rooms failed; the rest was given up", failed), {}};
}

void router::settle(std::uint64_t room, const flight& f) {
  auto& r = *report_;
  ++ended_rooms_;
  r.wrong_bytes += f.sink->wrong_bytes;
  for (const auto& text : f.sink->findings) find(text);
  for (const auto& text : f.source->findings) find(text);
  if (f.source->failure.empty() && f.sink->failure.empty()) {
    ++r.succeeded;
    r.tokens += f.tokens;
    r.pages += f.sink->pages;
    r.bytes_owned += f.tokens * plan_.bytes_per_token;
    r.bytes_verified += f.sink->bytes_verified;
    r.handoff_ns.push_back(f.sink->succeeded_ns - std::max(f.source->started_ns, f.sink->started_ns));
    return;
  }
  ++r.failures[f.sink->failure.empty() ? f.source->failure : f.sink->failure];
  const auto side = [](const room_outcome& o) {
    return o.failure.empty() ? std::string("success") : o.reason.empty() ? o.failure : o.reason;
  };
  find(fmt::format("room {} failed; decode says {}; prefill says {}", room, side(*f.sink), side(*f.source)));
}

error router::check_hung() {
  for (const auto& [room, f] : flights_) {
    if (now_ns() < f.deadline_ns) continue;
    ++report_->hung;
    const auto side = [](const std::optional<room_outcome>& o) { return o ? "ended" : "still running"; };
    find(fmt::format("room {} hangs: prefill {}, decode {}", room, side(f.source), side(f.sink)));
  }
  if (report_->hung == 0) return {};
  return {errc::timed_out,
          fmt::format("{} rooms outlived their bound of {} s", report_->hung, room_life_s(plan_.timeout_s)),
          {}};
}

void router::find(std::string text) {
  if (report_->findings.size() < findings_max) report_->findings.push_back(std::move(text));
}

void router::progress() {
  if (now_ns() - told_ns_ < progress_ns) return;
  told_ns_ = now_ns();
  const auto seconds = static_cast<double>(told_ns_ - started_ns_) / 1e9;
  say_(fmt::format("{:>6.1f} s  {} of {} requests, {} verified", seconds, ended_rooms_, plan_.tokens.size(),
                   format_bytes(report_->bytes_verified)));
}

}  // namespace handoff::replay
