// Some thousands of simulated rooms under all faults; that a seed repeats itself; that a failure is shrunk.
#include "tools/sim/coverage.hpp"
#include "tools/sim/runner.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

namespace handoff::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t rooms = 2'000;
#else
constexpr std::uint64_t rooms = 12'000;
#endif

std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string between(const std::string& text, const std::string& from, const std::string& to,
                    std::size_t& at) {
  const auto begin = text.find(from, at);
  if (begin == text.npos) return {};
  const auto end = text.find(to, begin + from.size());
  REQUIRE(end != text.npos);
  at = end;
  return text.substr(begin + from.size(), end - begin - from.size());
}

}  // namespace

// The mutants are built and run with the full suite only; what they replace moves with every change.
TEST_CASE("what a mutant replaces stands once in its source") {
  std::size_t mutants = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HANDOFF_MUTANT_LIST)) {
    const auto mutant = text_of(entry.path());
    CAPTURE(entry.path().filename().string());
    std::size_t at = 0, changes = 0;
    const auto source = text_of(between(mutant, "\nfile ", "\n", at));
    for (auto old = between(mutant, "<<<<\n", "\n====\n", at); !old.empty();
         old = between(mutant, "<<<<\n", "\n====\n", at), ++changes) {
      CAPTURE(old);
      CHECK(source.find(old) != source.npos);
      CHECK(source.find(old) == source.rfind(old));
    }
    CHECK(changes > 0);
    ++mutants;
  }
  CHECK(mutants >= 24);
}

TEST_CASE("thousands of rooms under all faults break nothing") {
  run_options options;
  options.world.faults.set();
  options.rooms = rooms;
  options.jobs = 2;
  const auto result = run(options, {});
  for (const auto& f : result.failures)
    for (const auto& v : f.violations) FAIL_CHECK(v, "; handoff sim ", command_line(f.world), " --list");
  MESSAGE(result.counts.rooms, " rooms, seeds from ", options.world.seed, ", ", result.elapsed_s, " s\n",
          to_table(result.counts));
  CHECK(result.counts.rooms == rooms);
  CHECK(result.counts.ends.at("both success") > rooms / 4);
  CHECK(idle_faults(result.counts, options.world.faults).empty());
}

TEST_CASE("without faults every room succeeds on both sides") {
  run_options options;
  options.rooms = 800;
  const auto result = run(options, {});
  CHECK(result.failures.empty());
  CHECK(result.counts.ends.at("both success") ==
        options.rooms + result.counts.worlds * 4);  // and one between each pair at the end
}

TEST_CASE("a seed repeats itself, with its events listed or not, on any number of threads") {
  world_options world;
  world.seed = 7;
  world.faults.set();
  const auto once = run_world(world);
  world.traced = true;
  const auto again = run_world(world);
  CHECK(once.digest == again.digest);
  CHECK(once.lines.empty());
  CHECK(again.lines.size() > 100);
  CHECK(run_world(world).lines == again.lines);
  world.seed = 8;
  CHECK(run_world(world).digest != once.digest);

  run_options options;
  options.world.faults.set();
  options.rooms = 400;
  const auto alone = run(options, {});
  options.jobs = 3;
  CHECK(run(options, {}).digest == alone.digest);
}

TEST_CASE("a planted failure is found, and shrunk to few rooms and faults") {
  world_options world;
  world.seed = 5;
  world.faults.set();
  world.planted = true;
  while (run_world(world).violations.empty()) ++world.seed;
  const auto least = shrink(world, 400);
  CHECK(!least.violations.empty());
  REQUIRE(least.world.only_rooms);
  CHECK(least.world.only_rooms->size() <= 2);
  CHECK(least.world.faults.count() <= 2);
  CHECK(!run_world(least.world).violations.empty());
  MESSAGE("shrunk in ", least.runs, " runs to handoff sim ", command_line(least.world));
}

TEST_CASE("faults are chosen by name") {
  CHECK(parse_faults("all")->all());
  CHECK(parse_faults("none")->none());
  const auto two = parse_faults("freeze,crash_decode");
  REQUIRE(two);
  CHECK(to_string(*two) == "freeze,crash_decode");
  CHECK(parse_faults("all,-abort")->count() == fault_count - 1);
  const auto wrong = parse_faults("freeze,earthquake");
  REQUIRE(!wrong);
  CHECK(wrong.error().detail.find("\"earthquake\" is no fault") != std::string::npos);
}

}  // namespace handoff::sim
