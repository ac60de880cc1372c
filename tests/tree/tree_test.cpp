// The rules over the project's own files. CTest runs this in the project's root.
#include "tests/tree/rules.hpp"

#include <sstream>

#include <doctest/doctest.h>

using namespace handoff::tree;

namespace {

const source_tree& project() {
  static const source_tree tree = read_tree(".");
  return tree;
}

std::set<std::string> machine_sources() {
  std::set<std::string> names;
  std::istringstream list(HANDOFF_MACHINE_SOURCES);
  for (std::string name; list >> name;) names.insert(name);
  return names;
}

void check_none(const violations& found) {
  for (const auto& violation : found) FAIL_CHECK(violation);
}

}  // namespace

TEST_CASE("the tree is read whole, without build outputs") {
  REQUIRE(project().count("CMakeLists.txt") == 1);
  REQUIRE(project().count("messages/error.hpp") == 1);
  for (const auto& [path, text] : project()) CHECK_FALSE(path.rfind("build/", 0) == 0);
}

TEST_CASE("includes follow messages <- config <- transport <- actors <- tools") {
  check_none(folder_order(project()));
}

TEST_CASE("libraries stay in the folders made for them") {
  check_none(library_homes(project()));
}

TEST_CASE("actors hold no lock, atomic, sleep or thread") {
  check_none(actors_without_locks(project()));
}

TEST_CASE("machines reach no CAF, thread, clock or I/O") {
  check_none(pure_machines(project(), machine_sources()));
}

TEST_CASE("every header is guarded") {
  check_none(guarded_headers(project()));
}

TEST_CASE("every source includes its own header first") {
  check_none(own_header_first(project()));
}

TEST_CASE("no notes to self and no paths of one machine") {
  check_none(banned_words(project()));
}

TEST_CASE("every folder says what belongs there") {
  check_none(folder_readmes(project()));
}

TEST_CASE("files of more than 500 lines are listed") {
  for (const auto& file : long_files(project())) MESSAGE("long: " << file);
}
