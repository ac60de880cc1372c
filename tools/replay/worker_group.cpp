#include "tools/replay/worker_group.hpp"

#include "tools/replay/room_driver.hpp"
#include "transport/fabric/shm_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace handoff::replay {
namespace {

constexpr std::uint64_t ping_ns = 1'000'000'000;

}  // namespace

error worker_group::start(const worker_setup& setup) {
  auto process = child_process::start({"replay-worker", std::to_string(getpid())});
  if (!process)
    return {process.error().code,
            fmt::format("{} process: {}", to_string(setup.role), process.error().detail),
            {}};
  const int output = process->output();
  workers_.emplace(setup.role, worker{std::move(*process), line_reader(output), now_ns()});
  return send(setup.role, make_line(kind::setup, setup));
}

error worker_group::send(engine_role role, const std::string& line) {
  auto& w = workers_.at(role);
  const auto problem = write_line(w.process.input(), line);
  if (!problem) return {};
  if (w.process.ended()) return how_it_ended(role, w);
  return {errc::peer_gone,
          fmt::format("the {} process takes no orders: {}", to_string(role), problem.detail),
          {}};
}

/// A ping that cannot be written is no news: the worker's end or its silence tells.
void worker_group::ping() {
  if (now_ns() - pinged_ns_ < ping_ns) return;
  pinged_ns_ = now_ns();
  for (auto& [role, w] : workers_) (void)write_line(w.process.input(), make_line(kind::ping));
}

error worker_group::check_silence() const {
  for (const auto& [role, w] : workers_) {
    const auto silent_ms = (now_ns() - w.heard_ns) / 1'000'000;
    if (silent_ms > static_cast<std::uint64_t>(silence_.count()))
      return {errc::peer_gone,
              fmt::format("the {} process (pid {}) has not answered for {} ms (--silence-s)", to_string(role),
                          w.process.pid(), silent_ms),
              {}};
  }
  return {};
}

expected<std::vector<worker_group::message>> worker_group::wait(std::chrono::milliseconds timeout) {
  if (!kept_.empty()) return std::exchange(kept_, {});
  return wait_for_new(timeout);
}

expected<std::vector<worker_group::message>> worker_group::wait_for_new(std::chrono::milliseconds timeout) {
  std::vector<message> lines;
  std::vector<pollfd> waits{{interrupt_fd_, POLLIN, 0}};
  for (const auto& [role, w] : workers_) waits.push_back({w.process.output(), POLLIN, 0});
  ping();
  poll(waits.data(), waits.size(), static_cast<int>(std::min<std::int64_t>(timeout.count(), 1000)));
  if (waits[0].revents != 0) return fail(errc::aborted, "interrupted");
  std::size_t i = 1;
  for (auto& [role, w] : workers_)
    if (waits[i++].revents != 0)
      if (auto e = read_lines(role, w, lines)) return unexpected(std::move(e));
  if (auto e = check_silence()) return unexpected(std::move(e));
  return lines;
}

error worker_group::read_lines(engine_role role, worker& w, std::vector<message>& out) {
  const auto state = w.reader.fill();
  if (!state)
    return {state.error().code, fmt::format("{} process: {}", to_string(role), state.error().detail), {}};
  while (const auto text = w.reader.next()) {
    auto line = parse_line(*text);
    if (!line)
      return {line.error().code, fmt::format("{} process: {}", to_string(role), line.error().detail), {}};
    w.heard_ns = now_ns();
    if (line->kind == kind::failed) {
      const auto note = body_of<failure_note>(*line);
      if (!note) return note.error();
      return {errc_from_wire(note->code), fmt::format("{} process: {}", to_string(role), note->detail), {}};
    }
    if (line->kind != kind::pong) out.push_back({role, std::move(*line)});
  }
  return *state == line_reader::state::ended ? how_it_ended(role, w) : error{};
}

error worker_group::how_it_ended(engine_role role, worker& w) {
  const auto how = w.process.wait(patience);
  return {errc::peer_gone,
          fmt::format("the {} process (pid {}) ended: {}", to_string(role), w.process.pid(),
                      how.empty() ? "exit status 0" : how),
          {}};
}

expected<control_line> worker_group::expect(engine_role role, std::string_view kind) {
  while (true) {
    const auto it = std::find_if(kept_.begin(), kept_.end(),
                                 [&](const message& m) { return m.role == role && m.line.kind == kind; });
    if (it != kept_.end()) {
      auto line = std::move(it->line);
      kept_.erase(it);
      return line;
    }
    auto lines = wait_for_new(std::chrono::seconds(1));
    if (!lines) return unexpected(lines.error());
    std::move(lines->begin(), lines->end(), std::back_inserter(kept_));
  }
}

std::string worker_group::stop(std::chrono::milliseconds patience_each) {
  std::string problems;
  const auto end = [&](engine_role role, worker& w) {
    const auto how = w.process.wait(patience_each);
    if (!how.empty())
      problems += fmt::format("{}the {} process: {}", problems.empty() ? "" : "; ", to_string(role), how);
  };
  // The engines first: they would miss the registry.
  for (auto& [role, w] : workers_)
    if (role != engine_role::bootstrap) w.process.close_input();
  for (auto& [role, w] : workers_)
    if (role != engine_role::bootstrap) end(role, w);
  if (const auto registry = workers_.find(engine_role::bootstrap); registry != workers_.end()) {
    registry->second.process.close_input();
    end(registry->first, registry->second);
  }
  // Killed processes leave their endpoints; the next start would find them, but who knows when that is.
  if (!problems.empty()) transport::fabric::shm_files::remove_stale();
  return problems;
}

}  // namespace handoff::replay
