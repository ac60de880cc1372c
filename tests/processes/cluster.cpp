#include "tests/processes/cluster.hpp"

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff::test {

using namespace replay;

namespace {

/// Far beyond what a start, a room or an ordered end takes on a busy machine.
constexpr milliseconds patience{20'000};

bool is_source(const std::string& name) {
  return name.rfind("prefill", 0) == 0;
}

bool is_half_over(const room_record& r) {
  constexpr std::uint64_t long_ns = 500'000'000;
  return (r.at_source || r.at_sink) && now_ns() - r.started_ns > long_ns;
}

room_record::end without_end(std::uint64_t room, const std::string& why) {
  room_outcome outcome;
  outcome.room = room;
  outcome.failure = why;
  return {outcome, now_ns()};
}

}  // namespace

cluster::cluster(std::string provider, std::vector<std::string> names, std::uint64_t seed,
                 worker_faults faults, worker_bounds bounds)
    : provider_(std::move(provider)), names_(std::move(names)), seed_(seed), bounds_(bounds) {
  group.on_room = [this](const std::string& engine, const room_outcome& outcome) {
    auto& record = rooms[outcome.room];
    (engine == record.source ? record.at_source : record.at_sink) = {outcome, now_ns()};
  };
  start_bootstrap();
  for (const auto& name : names_)
    group.start([&] {
      auto setup = setup_of(name);
      setup.faults = faults;
      return setup;
    }());
  for (const auto& name : names_)
    REQUIRE_MESSAGE(group.wait([&] { return group[name].ready.has_value(); }, patience), group[name].failed);
  for (const auto& name : names_)
    if (is_source(name)) warm_all(name);
  quiet();
  for (const auto& name : names_) mark(name);
}

worker_setup cluster::setup_of(const std::string& name) const {
  worker_setup setup;
  setup.role = name == "bootstrap" ? engine_role::bootstrap
               : is_source(name)   ? engine_role::prefill
                                   : engine_role::decode;
  setup.name = name;
  setup.model = "smollm2-135m";
  setup.provider = provider_;
  setup.bootstrap = bootstrap_;
  setup.source = "prefill-1";
  setup.page_tokens = 16;
  setup.pages = 48;
  setup.timeout_s = 20;
  setup.seed = seed_;
  setup.bounds = bounds_;
  setup.quiet = std::getenv("HANDOFF_TEST_LOG") == nullptr;
  return setup;
}

void cluster::start_bootstrap() {
  auto& e = group.start(setup_of("bootstrap"));
  REQUIRE_MESSAGE(group.wait([&] { return e.ready.has_value(); }, patience), e.failed);
  bootstrap_ = e.ready->endpoint;
}

void cluster::start_engine(const std::string& name, const worker_faults& faults) {
  auto setup = setup_of(name);
  setup.faults = faults;
  auto& e = group.start(setup);
  REQUIRE_MESSAGE(run([&] { return e.ready.has_value(); }, patience), e.failed);
}

void cluster::end(const std::string& name) {
  const auto how = group.finish(name, patience);
  REQUIRE_MESSAGE(how.empty(), name, ": ", how);
}

void cluster::bury(const std::string& name) {
  group.reap(name);
  for (auto& [id, r] : rooms) {
    if (r.source == name && !r.at_source) r.at_source = without_end(id, "its process died");
    if (r.sink == name && !r.at_sink) r.at_sink = without_end(id, "its process died");
  }
}

std::uint64_t cluster::start_room(const std::string& source, const std::string& sink, bool at_source,
                                  bool at_sink, std::uint64_t room) {
  const auto id = room != 0 ? room : next_room_++;
  auto& r = rooms[id];
  r = {id, now_ns(), source, sink, {}, {}};
  const auto order = make_line(kind::start, room_order{id, tokens, source});
  if (!at_source) r.at_source = without_end(id, "never started");
  if (!at_sink) r.at_sink = without_end(id, "never started");
  // Either side may hear of a room first.
  if (at_sink && id % 2 == 0) group.send(sink, order);
  if (at_source) group.send(source, order);
  if (at_sink && id % 2 != 0) group.send(sink, order);
  return id;
}

void cluster::stream(const std::string& source, const std::string& sink, std::size_t width) {
  flows_.push_back({source, sink, width, {}});
}

void cluster::stop_stream(const std::string& source, const std::string& sink) {
  std::erase_if(flows_, [&](const flow& f) { return f.source == source && f.sink == sink; });
}

void cluster::pump() {
  for (auto& f : flows_) {
    std::erase_if(f.flying, [&](auto id) { return rooms[id].over(); });
    while (f.flying.size() < f.width) f.flying.push_back(start_room(f.source, f.sink));
  }
}

bool cluster::run(const std::function<bool()>& done, milliseconds bound) {
  return group.wait(
      [&] {
        pump();
        return done();
      },
      bound);
}

void cluster::warm(const std::string& source, const std::string& sink) {
  std::uint64_t room = 0;
  const bool good = run(
      [&] {
        if (room != 0 && rooms[room].succeeded()) return true;
        // A sink tells a source what it missed when a next room connects them again: one does not wait for
        // it.
        if (room == 0 || rooms[room].over() || is_half_over(rooms[room])) room = start_room(source, sink);
        return false;
      },
      patience);
  REQUIRE_MESSAGE(good, fmt::format("{} to {}: {}", source, sink, failures(source, sink, true)));
}

void cluster::warm_all(const std::string& engine) {
  for (const auto& other : names_)
    if (is_source(engine) != is_source(other)) is_source(engine) ? warm(engine, other) : warm(other, engine);
}

void cluster::quiet() {
  flows_.clear();
  const bool good = run(
      [&] { return std::all_of(rooms.begin(), rooms.end(), [](const auto& r) { return r.second.over(); }); },
      patience);
  std::string left;
  for (const auto& [id, r] : rooms)
    if (!r.over())
      left += fmt::format("room {} {}{} {}{}; ", id, r.source, r.at_source ? "" : " (open)", r.sink,
                          r.at_sink ? "" : " (open)");
  REQUIRE_MESSAGE(good, left);
}

void cluster::mark(const std::string& name) {
  const auto wanted = group[name].marks + 1;
  group.send(name, make_line(kind::mark));
  REQUIRE(run([&] { return group[name].marks == wanted; }, patience));
}

worker_summary cluster::settle(const std::string& name) {
  const auto wanted = group[name].summaries.size() + 1;
  group.send(name, make_line(kind::finish));
  REQUIRE_MESSAGE(run([&] { return group[name].summaries.size() == wanted; }, patience), name);
  return group[name].summaries.back();
}

std::size_t cluster::successes(const std::string& source, const std::string& sink,
                               std::uint64_t from_ns) const {
  return static_cast<std::size_t>(std::count_if(rooms.begin(), rooms.end(), [&](const auto& entry) {
    const auto& r = entry.second;
    return r.source == source && r.sink == sink && r.succeeded() && r.at_sink->at_ns >= from_ns;
  }));
}

std::vector<std::uint64_t> cluster::open_at(const std::string& engine) const {
  std::vector<std::uint64_t> open;
  for (const auto& [id, r] : rooms)
    if ((r.source == engine || r.sink == engine) && !r.at(engine)) open.push_back(id);
  return open;
}

std::string cluster::failures(const std::string& source, const std::string& sink, bool open_too) const {
  std::string text;
  for (const auto& [id, r] : rooms) {
    if (r.source != source || r.sink != sink || r.succeeded() || (!r.over() && !open_too)) continue;
    const auto side = [](const std::optional<room_record::end>& e) {
      return !e                           ? std::string("open")
             : e->outcome.failure.empty() ? "success"
                                          : e->outcome.failure + ": " + e->outcome.reason;
    };
    text += fmt::format("room {}: source {}; sink {}\n", id, side(r.at_source), side(r.at_sink));
  }
  return text;
}

}  // namespace handoff::test
