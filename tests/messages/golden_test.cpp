#include "tests/messages/golden.hpp"

#include <fstream>
#include <string>

#include <doctest/doctest.h>

using namespace handoff;

TEST_CASE("the bytes of every message are the checked-in ones") {
  std::ifstream in(HANDOFF_GOLDEN_FILE);
  REQUIRE_MESSAGE(in, "cannot read " HANDOFF_GOLDEN_FILE);
  std::string first, second;

  const auto now = test::encode_golden();
  INFO("tests/messages/golden.hpp says how to write the file anew");
  for (const auto& message : now) {
    REQUIRE(std::getline(in, first));
    REQUIRE(std::getline(in, second));
    first.append("\n").append(second).append("\n");
    CHECK(first == to_lines(message));
  }
  CHECK_FALSE(std::getline(in, first));
}
