// tests/field_log.md names a test for each row: it must be where the log says.
#include "tests/tree/source_tree.hpp"

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace handoff::tree;

namespace {

/// String literals that stand side by side are one.
std::string joined(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    auto next = text[at] == '"' ? text.find_first_not_of(" \t\r\n", at + 1) : std::string::npos;
    if (next != std::string::npos && next > at + 1 && text[next] == '"')
      at = next + 1;
    else
      out += text[at++];
  }
  return out;
}

/// "" or what is wrong with the last cell of a row: `file` "case".
std::string judge(const source_tree& tree, const std::string& cell) {
  if (cell.rfind("cannot exist here: ", 0) == 0 || cell.rfind("open: ", 0) == 0) return {};
  auto seam = cell.find("` \"");
  if (cell.rfind("`tests/", 0) != 0 || seam == std::string::npos || cell.back() != '"')
    return "neither a test nor a reason: " + cell;
  auto path = cell.substr(1, seam - 1), name = cell.substr(seam + 2);
  auto file = tree.find(path);
  if (file == tree.end()) return "no such file: " + path;
  if (joined(file->second).find(name) == std::string::npos) return path + " has no case named " + name;
  return {};
}

/// The cells of a table's row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (auto at = line.find("| ");;) {
    auto end = line.find(" |", at + 2);
    if (at == std::string::npos || end == std::string::npos) return cells;
    cells.push_back(line.substr(at + 2, end - at - 2));
    at = end + 1;
  }
}

}  // namespace

TEST_CASE("every row of the field log names a test that exists, or says why there is none") {
  const auto tree = read_tree(".");
  std::istringstream log(tree.at("tests/field_log.md"));
  std::set<std::string> rows;
  std::size_t impossible = 0, open = 0;
  for (std::string line; std::getline(log, line);) {
    if (line.rfind("| P", 0) != 0) continue;
    auto cells = cells_of(line);
    REQUIRE_MESSAGE(cells.size() == 3, line);
    CHECK_MESSAGE(rows.insert(cells[0]).second, cells[0], " stands twice");
    auto wrong = judge(tree, cells[2]);
    CHECK_MESSAGE(wrong.empty(), cells[0], ": ", wrong);
    impossible += cells[2].rfind("cannot", 0) == 0;
    open += cells[2].rfind("open", 0) == 0;
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
