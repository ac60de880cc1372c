#include "tests/processes/engine_group.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace handoff::test {

namespace fs = std::filesystem;
using namespace replay;

engine_group::engine& engine_group::start(const worker_setup& setup) {
  auto process =
      child_process::start({"replay-worker", std::to_string(getpid())}, std::string(HANDOFF_COMMAND));
  REQUIRE_MESSAGE(process, process.error().detail);
  auto& e = *(engines_[setup.name] = std::make_unique<engine>(std::move(*process), setup));
  send(setup.name, make_line(kind::setup, setup));
  return e;
}

void engine_group::send(const std::string& name, const std::string& line) {
  // One that was killed is noticed by the end of its output.
  (void)write_line((*this)[name].process.input(), line);
}

void engine_group::poll_lines(milliseconds timeout) {
  std::vector<pollfd> waits;
  std::vector<engine*> who;
  for (auto& [name, e] : engines_) {
    if (e->gone_ns != 0) continue;
    waits.push_back({e->process.output(), POLLIN, 0});
    who.push_back(e.get());
  }
  if (poll(waits.data(), waits.size(), static_cast<int>(timeout.count())) <= 0) return;
  for (std::size_t i = 0; i < who.size(); ++i) {
    if (waits[i].revents == 0) continue;
    auto& e = *who[i];
    const auto state = e.reader.fill();
    REQUIRE_MESSAGE(state, state.error().detail);
    while (const auto text = e.reader.next()) take(e, *text);
    if (*state == line_reader::state::ended) e.gone_ns = now_ns();
  }
}

void engine_group::take(engine& e, const std::string& text) {
  const auto line = parse_line(text);
  REQUIRE_MESSAGE(line, text);
  if (line->kind == kind::ready) {
    e.ready = body_of<ready_note>(*line).value();
  } else if (line->kind == kind::breakpoint) {
    e.breakpoint = body_of<breakpoint_note>(*line).value().where;
    e.breakpoint_ns = now_ns();
  } else if (line->kind == kind::room) {
    if (on_room) on_room(e.setup.name, body_of<room_outcome>(*line).value());
  } else if (line->kind == kind::marked) {
    ++e.marks;
  } else if (line->kind == kind::summary) {
    e.summaries.push_back(body_of<worker_summary>(*line).value());
  } else if (line->kind == kind::failed) {
    e.failed = body_of<failure_note>(*line).value().detail;
  }
}

bool engine_group::wait(const std::function<bool()>& done, milliseconds bound) {
  const auto until = now_ns() + static_cast<std::uint64_t>(bound.count()) * 1'000'000;
  while (!done()) {
    const auto now = now_ns();
    if (now >= until) return false;
    poll_lines(std::min(milliseconds(20), milliseconds((until - now) / 1'000'000 + 1)));
  }
  return true;
}

void engine_group::signal(const std::string& name, int number) {
  REQUIRE(kill((*this)[name].process.pid(), number) == 0);
}

std::string engine_group::finish(const std::string& name, milliseconds bound) {
  auto& e = *engines_.at(name);
  remember_shm(name);
  e.process.close_input();
  // Its last words must not fill the pipe.
  wait([&] { return e.gone_ns != 0; }, bound);
  auto how = e.process.wait(bound);
  if (!e.failed.empty()) how += " (" + e.failed + ")";
  engines_.erase(name);
  return how;
}

void engine_group::reap(const std::string& name) {
  auto& e = *engines_.at(name);
  (void)e.process.wait(milliseconds(5000));
  engines_.erase(name);
}

/// "handoff-<incarnation>-<instance>": common to all names of one life of a process.
void engine_group::remember_shm(const std::string& name) {
  constexpr std::size_t prefix_length = 8 + 16 + 1 + 8;
  std::error_code problem;
  const auto folder = fs::path("/proc") / std::to_string((*this)[name].process.pid()) / "fd";
  for (fs::directory_iterator it(folder, problem), end; it != end; it.increment(problem)) {
    std::error_code gone;
    const auto target = fs::read_symlink(it->path(), gone);
    if (target.parent_path() == "/dev/shm" && target.filename().string().rfind("handoff-", 0) == 0)
      shm_prefixes_.insert(target.filename().string().substr(0, prefix_length));
  }
}

std::vector<std::string> engine_group::shm_names() const {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator it("/dev/shm", problem), end; it != end; it.increment(problem)) {
    const auto name = it->path().filename().string();
    for (const auto& prefix : shm_prefixes_)
      if (name.rfind(prefix, 0) == 0) names.push_back(name);
  }
  return names;
}

}  // namespace handoff::test
