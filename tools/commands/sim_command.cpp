#include "tools/commands/commands.hpp"
#include "tools/sim/coverage.hpp"
#include "tools/sim/runner.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace handoff::tools {
namespace {

using namespace sim;

constexpr std::size_t shrink_runs_max = 400;
constexpr std::uint32_t world_rooms_max = 1000;  ///< words in a world's memory name 65,536 offers

struct sim_options {
  std::uint64_t seed = 1, rooms = 4000;
  std::uint32_t world_rooms = 40;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string faults = "all", engines = "2,2", json, only_rooms, only_events;
  double share = 0;
  bool shrink = false, list = false;
};

/// "3,17"; "none" is the empty set.
expected<std::set<std::uint32_t>> parse_numbers(const std::string& list) {
  std::set<std::uint32_t> out;
  if (list == "none") return out;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    std::uint32_t n = 0;
    const auto end = word.data() + word.size();
    const auto [stopped, failed] = std::from_chars(word.data(), end, n);
    if (failed != std::errc() || stopped != end)
      return handoff::fail(errc::invalid_argument, fmt::format("\"{}\" is no number", word));
    out.insert(n);
  }
  return out;
}

expected<run_options> prepare(const sim_options& o) {
  run_options run;
  if (!(o.share >= 0 && o.share <= 1)) return fail(errc::invalid_argument, "--share: a number from 0 to 1");
  const auto faults = parse_faults(o.faults);
  if (!faults) return unexpected(faults.error());
  unsigned prefill = 0, decode = 0;
  char rest = 0;
  if (std::sscanf(o.engines.c_str(), "%u,%u%c", &prefill, &decode, &rest) != 2 || prefill < 1 || decode < 1 ||
      prefill > 8 || decode > 8)
    return handoff::fail(errc::invalid_argument,
                         fmt::format("--engines {}: two numbers from 1 to 8", o.engines));
  run.world.seed = o.seed;
  run.world.rooms = o.world_rooms;
  run.world.prefill = prefill;
  run.world.decode = decode;
  run.world.faults = *faults;
  run.world.share = o.share;
  run.rooms = o.rooms;
  run.jobs = o.jobs;
  for (const auto& [text, into] :
       {std::pair(&o.only_rooms, &run.world.only_rooms), std::pair(&o.only_events, &run.world.only_events)}) {
    if (text->empty()) continue;
    auto numbers = parse_numbers(*text);
    if (!numbers) return unexpected(numbers.error());
    *into = std::move(*numbers);
  }
  return run;
}

nlohmann::json to_json(const run_result& result) {
  nlohmann::json out;
  const auto& c = result.counts;
  out["rooms"] = c.rooms;
  out["worlds"] = c.worlds;
  out["tries"] = c.tries;
  out["events"] = c.events;
  out["elapsed_s"] = result.elapsed_s;
  out["digest"] = fmt::format("{:016x}", result.digest);
  out["ends"] = c.ends;
  out["also"] = c.other;
  for (std::size_t i = 0; i < fault_count; ++i)
    out["faults"][std::string(to_string(static_cast<fault>(i)))] = c.faults[i];
  for (const auto& t : machine_tables())
    for (const auto& [cell, count] : t.counts(c))
      out["cells"][std::string(t.machine)][std::string(cell.first)][std::string(cell.second)] = count;
  out["failures"] = nlohmann::json::array();
  for (const auto& f : result.failures)
    out["failures"].push_back({{"replay", "handoff sim " + command_line(f.world)}, {"broken", f.violations}});
  return out;
}

void list_events(world_options world) {
  world.traced = true;
  for (const auto& line : run_world(world).lines) fmt::print("{}\n", line);
}

void show_failure(const failure& f, bool shrinking) {
  fmt::print("\nseed {} broke:\n", f.world.seed);
  for (const auto& v : f.violations) fmt::print("  {}\n", v);
  auto world = f.world;
  if (shrinking) {
    auto least = shrink(f.world, shrink_runs_max);
    world = least.world;
    fmt::print("the least that still breaks, found in {} runs:\n", least.runs);
    for (const auto& v : least.violations) fmt::print("  {}\n", v);
    list_events(world);
  }
  fmt::print("replay it with its events: handoff sim {} --list\n", command_line(world));
}

int simulate(const sim_options& o) {
  auto options = prepare(o);
  if (!options) {
    fmt::print(stderr, "handoff sim: {}\n", options.error().detail);
    return exit_usage;
  }
  if (o.list && o.rooms > o.world_rooms) {
    fmt::print(stderr, "handoff sim: --list shows one world: ask for at most --world-rooms {} rooms\n",
               o.world_rooms);
    return exit_usage;
  }
  if (o.list) {
    auto world = options->world;
    world.rooms = static_cast<std::uint32_t>(o.rooms);
    list_events(world);
  }
  std::uint64_t shown = 0;
  const auto progress = [&](std::uint64_t done) {
    if (done < shown + 50'000) return;
    shown = done;
    fmt::print("{} rooms\n", done);
    std::fflush(stdout);
  };
  const auto result = run(*options, progress);
  const auto& c = result.counts;
  fmt::print("{}", to_table(c));
  fmt::print(
      "{} rooms, {} tries, {} events of their parts, in {} worlds: {:.1f} s, {:.0f} rooms/s; seed {}, digest "
      "{:016x}\n",
      c.rooms, c.tries, c.events, c.worlds, result.elapsed_s, static_cast<double>(c.rooms) / result.elapsed_s,
      o.seed, result.digest);
  for (std::size_t i = 0; i < result.failures.size(); ++i)
    show_failure(result.failures[i], o.shrink && i == 0);
  if (!o.json.empty()) {
    std::ofstream out(o.json);
    out << to_json(result).dump(2) << '\n';
    out.close();
    if (!out) {
      fmt::print(stderr, "handoff sim: {} cannot be written\n", o.json);
      return exit_status(errc::io);
    }
  }
  if (result.failures.empty()) {
    fmt::print("no invariant was broken\n");
    return 0;
  }
  return exit_rooms;
}

}  // namespace

void add_sim(CLI::App& app, int& status) {
  auto* command = app.add_subcommand(
      "sim", "Simulate engines, rooms and failures in virtual time, check every invariant");
  command->footer(
      "Worlds of some engines and rooms each, one seed after the other, on one thread each. After every "
      "event\n"
      "it is checked that pages are written only while they are leased to that room and attempt, that "
      "success\n"
      "has every byte, that both sides end alike and within their bounds, and that nothing is left at the "
      "end.\n"
      "Exit status: 0 nothing broke; 2 bad options; 5 an invariant broke: the seeds that replay it are "
      "printed.\n\n"
      "Faults: all, none, or names with commas between; all,-freeze is all but one. A wrong name lists "
      "them.\n\n"
      "Examples:\n"
      "  handoff sim\n"
      "  handoff sim --seed 7 --rooms 1000000 --faults all\n"
      "  handoff sim --rooms 20000 --faults crash_prefill,crash_decode --engines 3,2 --shrink\n"
      "  handoff sim --seed 12 --rooms 40 --faults all --list");
  const auto o = std::make_shared<sim_options>();
  command->add_option("--seed", o->seed, "Of the first world; the next ones follow")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  command->add_option("--rooms", o->rooms, "In all worlds together")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  command->add_option("--world-rooms", o->world_rooms, "In one world")
      ->capture_default_str()
      ->check(CLI::Range(1u, world_rooms_max));
  command->add_option("--faults", o->faults, "all, none, or some by name")->capture_default_str();
  command->add_option("--engines", o->engines, "Prefill and decode engines of one world")
      ->capture_default_str();
  command->add_option("--jobs", o->jobs, "Worlds at once")
      ->capture_default_str()
      ->check(CLI::Range(1u, 256u));
  command->add_flag("--shrink", o->shrink, "Search the first failure's least rooms, faults and events");
  command->add_flag("--list", o->list, "Print every event of one world");
  command->add_option("--json", o->json, "Write counts and failures to this file as well");
  command
      ->add_option("--share", o->share, "Of the faults that one world suffers; 0: all of a few, 0.3 of many")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--only-rooms", o->only_rooms,
                      "By number, or none: leave out all others (what --shrink prints)");
  command->add_option("--only-events", o->only_events, "The same for crashes, partitions and so on");
  command->callback([o, &status] { status = simulate(*o); });
}

}  // namespace handoff::tools
