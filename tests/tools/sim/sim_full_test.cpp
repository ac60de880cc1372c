// The long form: a million rooms with every cell of every machine, and every mutant caught.
#include "tools/sim/coverage.hpp"
#include "tools/sim/runner.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace handoff::sim {
namespace {

constexpr std::uint64_t rooms = 1'000'000, mutant_rooms_max = 400'000;

std::vector<std::string> mutants() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HANDOFF_MUTANT_LIST))
    if (entry.path().extension() == ".mutant") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

/// A mutant whose order of events is rare under all faults names those that it needs.
std::string faults_for(const std::string& name) {
  std::ifstream in(std::string(HANDOFF_MUTANT_LIST) + "/" + name + ".mutant");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("faults ", 0) == 0) return line.substr(7);
  return "all";
}

}  // namespace

TEST_CASE("a million rooms under all faults break nothing and reach every cell") {
  run_options options;
  options.world.seed = 1'000'000;
  options.world.faults.set();
  options.rooms = rooms;
  options.jobs = 2;
  const auto result = run(options, {});
  for (const auto& f : result.failures)
    for (const auto& v : f.violations) FAIL_CHECK(v, "; handoff sim ", command_line(f.world), " --list");
  MESSAGE(result.counts.rooms, " rooms, seeds from ", options.world.seed, ", ", result.elapsed_s, " s\n",
          to_table(result.counts));
  CHECK(result.counts.rooms == rooms);
  CHECK(idle_faults(result.counts, options.world.faults).empty());
  for (const auto& cell : wrong_cells(result.counts)) FAIL_CHECK(cell);
}

TEST_CASE("every mutant of the machines is caught") {
  const auto names = mutants();
  CHECK(names.size() >= 12);
  std::string table;
  for (const auto& name : names) {
    const auto program = std::string(HANDOFF_MUTANTS) + "/sim_mutant_" + name;
    INFO(program, " is built by the target sim_mutants");
    REQUIRE(std::filesystem::exists(program));
    const auto command = program + " " + std::to_string(mutant_rooms_max) + " " + faults_for(name) + " 2>&1";
    const std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
    REQUIRE(out);
    std::string said;
    char buffer[512];
    while (std::fgets(buffer, sizeof buffer, out.get()) != nullptr) said += buffer;
    CHECK_MESSAGE(said.rfind("caught in ", 0) == 0, name, ": ", said);
    table.append(name).append(" (").append(faults_for(name)).append("): ").append(said);
  }
  MESSAGE("mutants\n", table);
}

}  // namespace handoff::sim
