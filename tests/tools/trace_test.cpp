#include "tools/replay/trace.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

expected<std::vector<request>> read(const std::string& text, std::uint64_t requests = 100) {
  std::istringstream in(text);
  return read_trace(in, "trace", requests);
}

void check_refused(const std::string& text, std::string_view expected) {
  const auto requests = read(text);
  REQUIRE_FALSE_MESSAGE(requests, text.substr(0, 100));
  CHECK(requests.error().code == errc::invalid_argument);
  CHECK_MESSAGE(requests.error().detail.find(expected) != std::string::npos, requests.error().detail);
}

const std::string mooncake =
    R"({"timestamp": 1000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]})"
    "\n"
    R"({"timestamp": 1250, "input_length": 7322, "output_length": 490, "hash_ids": []})"
    "\n";
const std::string azure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-17 00:00:04.0319600,3180,8";

}  // namespace

TEST_CASE("Mooncake's lines are read, times count from the first") {
  const auto requests = read(mooncake);
  REQUIRE(requests);
  CHECK(*requests == std::vector<request>{{0, 6758, 500, {0, 1, 2}}, {250, 7322, 490, {}}});
}

TEST_CASE("Azure's table is read, with its line ends and without the last one") {
  const auto requests = read(azure);
  REQUIRE(requests);
  CHECK(*requests == std::vector<request>{{0, 4808, 10, {}}, {20'580'052, 3180, 8, {}}});
}

TEST_CASE("reading stops at the number of requests that was asked for") {
  CHECK(read(mooncake, 1)->size() == 1);
  CHECK(read(mooncake + "not read", 2)->size() == 2);
  CHECK(read(azure, 1)->size() == 1);
}

TEST_CASE("a malformed line is an error that names file, line and what was expected") {
  check_refused("", "no request in it");
  check_refused("hello\n", "trace:1: neither Mooncake's JSON lines nor the CSV header");
  check_refused("{\n", "trace:1: not a JSON object");
  check_refused(mooncake + "[1]\n", "trace:3: not a JSON object");
  check_refused(mooncake + "\n" + mooncake, "trace:3: the line is empty");
  check_refused(R"({"timestamp": 0, "output_length": 1})", "trace:1: 'input_length' is missing");
  check_refused(R"({"timestamp": 0, "input_length": -4, "output_length": 1})", "'input_length' is -4");
  check_refused(R"({"timestamp": 0, "input_length": 1.5, "output_length": 1})", "'input_length' is 1.5");
  check_refused(R"({"timestamp": 0, "input_length": 0, "output_length": 1})", "expected 1 to 16777216");
  check_refused(R"({"timestamp": 0, "input_length": 99999999999, "output_length": 1})",
                "expected 1 to 16777216");
  check_refused(R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 3})",
                "'hash_ids' is no list");
  check_refused(R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]})",
                "something else than whole numbers");
  check_refused("{" + std::string(trace_line_bytes, ' ') + "}\n",
                "trace:1: the line is longer than 262144 bytes");

  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  check_refused(header, "no request in it");
  check_refused(header + "2023-11-16 18:17:03.9,1\n", "trace:2: expected the three columns");
  check_refused(header + "2023-11-16 18:17:03.9,1,2,3\n", "trace:2: expected the three columns");
  check_refused(header + "yesterday,1,2\n", "trace:2: TIMESTAMP is 'yesterday'");
  check_refused(header + "2023-02-30 18:17:03.9,1,2\n", "TIMESTAMP is '2023-02-30 18:17:03.9'");
  check_refused(header + "2023-11-16 18:17:03,many,2\n", "ContextTokens is 'many'");
  check_refused(header + "2023-11-16 18:17:03,0,2\n", "ContextTokens is 0");
  check_refused(header + "2023-11-16 18:17:03,1,-2\n", "GeneratedTokens is '-2'");
}

TEST_CASE("a file that cannot be read is named with the reason") {
  const auto missing = read_trace_file("no/such/trace.jsonl", 1);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().detail == "no/such/trace.jsonl: No such file or directory");
  const auto directory = read_trace_file("tests", 1);
  REQUIRE_FALSE(directory);
  CHECK(directory.error().detail == "tests: is a directory");
}

TEST_CASE("the built-in workload follows the conversation trace's lengths") {
  const auto requests = built_in_workload(20'000, 1);
  CHECK(requests == built_in_workload(20'000, 1));
  CHECK(requests != built_in_workload(20'000, 2));
  std::vector<std::uint64_t> lengths;
  for (const auto& r : requests) lengths.push_back(r.input_tokens);
  std::sort(lengths.begin(), lengths.end());
  const auto mean = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) / lengths.size();
  CHECK(lengths.front() >= 891);
  CHECK(lengths.back() <= 126'195);
  CHECK(mean > 11'500);
  CHECK(mean < 12'900);
  CHECK(lengths[10'000] > 6'400);
  CHECK(lengths[10'000] < 7'400);
  CHECK(lengths[19'800] > 80'000);
  CHECK(lengths[19'800] < 91'000);
}
