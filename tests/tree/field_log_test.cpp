// tests/field_log.md names a test for each row: it must be where the log says.
#include "tests/tree/source_tree.hpp"

#include <regex>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

using namespace handoff::tree;

namespace {

/// String literals that stand side by side are one.
std::string joined(const std::string& text) {
  static const std::regex seam("\"[ \t\r\n]+\"");
  return std::regex_replace(text, seam, "");
}

/// "" or what is wrong with the last cell of a row.
std::string judge(const source_tree& tree, const std::string& cell) {
  if (cell.rfind("cannot exist here: ", 0) == 0 || cell.rfind("open: ", 0) == 0) return {};
  static const std::regex shape("`(tests/[a-z_/]+\\.cpp)` \"(.+)\"");
  std::smatch parts;
  if (!std::regex_match(cell, parts, shape)) return "neither a test nor a reason: " + cell;
  auto file = tree.find(parts[1]);
  if (file == tree.end()) return "no such file: " + parts[1].str();
  if (joined(file->second).find('"' + parts[2].str() + '"') == std::string::npos)
    return parts[1].str() + " has no case named \"" + parts[2].str() + '"';
  return {};
}

}  // namespace

TEST_CASE("every row of the field log names a test that exists, or says why there is none") {
  const auto tree = read_tree(".");
  std::istringstream log(tree.at("tests/field_log.md"));
  static const std::regex row("\\| (P[0-9]{3}) \\| (.+) \\| (.+) \\|");
  std::set<std::string> rows;
  std::size_t impossible = 0, open = 0;
  for (std::string line; std::getline(log, line);) {
    std::smatch cells;
    if (line.rfind("| P", 0) != 0) continue;
    REQUIRE_MESSAGE(std::regex_match(line, cells, row), line);
    CHECK_MESSAGE(rows.insert(cells[1]).second, cells[1].str(), " stands twice");
    auto wrong = judge(tree, cells[3]);
    CHECK_MESSAGE(wrong.empty(), cells[1].str(), ": ", wrong);
    impossible += cells[3].str().rfind("cannot", 0) == 0;
    open += cells[3].str().rfind("open", 0) == 0;
  }
  CHECK(rows.size() == 78);
  MESSAGE(rows.size(), " rows: ", rows.size() - impossible - open, " name a test, ", impossible,
          " cannot exist here, ", open, " are open");
}

TEST_CASE("a field log's row without its test is refused") {
  const source_tree tree{{"tests/a_test.cpp", "TEST_CASE(\n    \"one \"\n    \"name\") {}"}};
  CHECK(judge(tree, "`tests/a_test.cpp` \"one name\"") == "");
  CHECK(judge(tree, "cannot exist here: because") == "");
  CHECK(judge(tree, "`tests/a_test.cpp` \"another\"") != "");
  CHECK(judge(tree, "`tests/b_test.cpp` \"one name\"") != "");
  CHECK(judge(tree, "no idea") != "");
}
