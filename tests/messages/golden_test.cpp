#include "tests/messages/golden.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace handoff;

TEST_CASE("the bytes of every message are the checked-in ones") {
  std::ifstream in(HANDOFF_GOLDEN_FILE);
  REQUIRE_MESSAGE(in, "cannot read " HANDOFF_GOLDEN_FILE);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);

  const auto now = test::encode_golden();
  INFO("tests/messages/golden.hpp says how to write the file anew");
  REQUIRE(lines.size() == now.size());
  for (std::size_t i = 0; i < now.size(); ++i) CHECK(lines[i] == to_line(now[i]));
}
