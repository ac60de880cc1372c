#include "tools/sim/runner.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace handoff::sim {

// -- many --------------------------------------------------------------------------------------------------

run_result run(const run_options& options, const std::function<void(std::uint64_t)>& progress) {
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t each = std::max<std::uint64_t>(options.world.rooms, 1);
  const std::uint64_t worlds = (options.rooms + each - 1) / each;
  std::atomic<std::uint64_t> next{0};
  std::mutex guard;
  run_result result;
  std::uint64_t done = 0;
  const auto work = [&] {
    for (;;) {
      const auto number = next.fetch_add(1);
      if (number >= worlds) return;
      auto mine = options.world;
      mine.seed += number;
      mine.rooms = static_cast<std::uint32_t>(std::min(each, options.rooms - number * each));
      auto one = run_world(mine);
      const std::lock_guard lock(guard);
      if (result.failures.size() >= options.failures_max) return;
      result.counts.add(one.counts);
      result.digest += one.digest * (number * 2 + 1);  // whichever ends first
      if (!one.violations.empty())
        result.failures.push_back({mine, number * each + mine.rooms, std::move(one.violations)});
      done += mine.rooms;
      if (progress) progress(done);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.jobs; ++i) threads.emplace_back(work);
  work();
  for (auto& t : threads) t.join();
  std::sort(result.failures.begin(), result.failures.end(),
            [](const failure& a, const failure& b) { return a.world.seed < b.world.seed; });
  result.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

// -- the least ---------------------------------------------------------------------------------------------

namespace {

class shrinker {
 public:
  shrinker(const world_options& failing, std::size_t runs_max) : runs_max_(runs_max) {
    best_.world = failing;
    best_.world.traced = false;
  }

  shrunk search() {
    auto whole = attempt(best_.world);
    if (whole.violations.empty()) return best_;
    best_.violations = whole.violations;
    auto plain = best_.world;
    plain.faults = whole.active;
    plain.share = 1;
    (void)accept(plain);
    less_faults();
    less(&world_options::only_rooms, all_rooms());
    less(&world_options::only_events, whole.events);
    less_faults();
    return best_;
  }

 private:
  world_result attempt(const world_options& world) {
    ++best_.runs;
    return run_world(world);
  }
  bool accept(const world_options& world) {
    if (best_.runs >= runs_max_) return false;
    auto r = attempt(world);
    if (r.violations.empty()) return false;
    best_.world = world;
    best_.violations = std::move(r.violations);
    return true;
  }
  std::set<std::uint32_t> all_rooms() const {
    if (best_.world.only_rooms) return *best_.world.only_rooms;
    std::set<std::uint32_t> all;
    for (std::uint32_t i = 0; i < best_.world.rooms; ++i) all.insert(i);
    return all;
  }
  void less_faults() {
    for (std::size_t i = 0; i < fault_count; ++i) {
      if (!best_.world.faults[i]) continue;
      auto without = best_.world;
      without.faults.reset(i);
      (void)accept(without);
    }
  }
  /// Halves, quarters, and so on down to single ones.
  void less(std::optional<std::set<std::uint32_t>> world_options::*which, std::set<std::uint32_t> kept) {
    for (auto size = (kept.size() + 1) / 2; size > 0 && !kept.empty();
         size = size == 1 ? 0 : (size + 1) / 2) {
      const std::vector<std::uint32_t> numbers(kept.begin(), kept.end());
      for (std::size_t from = 0; from < numbers.size(); from += size) {
        auto fewer = kept;
        for (auto i = from; i < std::min(from + size, numbers.size()); ++i) fewer.erase(numbers[i]);
        auto without = best_.world;
        without.*which = fewer;
        if (accept(without)) kept = fewer;
      }
    }
  }

  shrunk best_;
  std::size_t runs_max_;
};

}  // namespace

shrunk shrink(const world_options& failing, std::size_t runs_max) {
  return shrinker(failing, runs_max).search();
}

std::string command_line(const world_options& w) {
  auto out = fmt::format("--seed {} --rooms {} --world-rooms {} --engines {},{} --faults {}", w.seed, w.rooms,
                         w.rooms, w.prefill, w.decode, to_string(w.faults));
  if (w.share > 0) out += fmt::format(" --share {}", w.share);
  if (w.only_rooms)
    out += fmt::format(" --only-rooms {}",
                       w.only_rooms->empty() ? "none" : fmt::format("{}", fmt::join(*w.only_rooms, ",")));
  if (w.only_events)
    out += fmt::format(" --only-events {}",
                       w.only_events->empty() ? "none" : fmt::format("{}", fmt::join(*w.only_events, ",")));
  return out;
}

}  // namespace handoff::sim
