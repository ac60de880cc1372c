#include "tools/replay/token_scale.hpp"

#include <doctest/doctest.h>

using namespace handoff;
using namespace handoff::replay;

namespace {

std::vector<request> requests_of(std::initializer_list<std::uint64_t> tokens) {
  std::vector<request> result;
  for (const auto t : tokens) result.push_back({0, t, 0, {}});
  return result;
}

constexpr std::uint64_t gib = 1ull << 30;

}  // namespace

TEST_CASE("a scale divides by a power of two and leaves at least one token") {
  CHECK(token_scale{0}.apply(6758) == 6758);
  CHECK(token_scale{5}.apply(6758) == 211);
  CHECK(token_scale{20}.apply(6758) == 1);
  CHECK(to_string(token_scale{0}) == "1");
  CHECK(to_string(token_scale{5}) == "1/32");
}

TEST_CASE("scales are read as they are printed, everything else is refused with what was expected") {
  for (unsigned shift = 0; shift <= 20; ++shift)
    CHECK(parse_token_scale(to_string(token_scale{shift})) == token_scale{shift});
  for (const auto* text :
       {"", "0", "2", "1/", "1/0", "1/3", "1/-2", "1/2097152", "1/2 ", "0.5", "1/99999999999999999999"}) {
    const auto scale = parse_token_scale(text);
    REQUIRE_FALSE_MESSAGE(scale, text);
    CHECK(scale.error().code == errc::invalid_argument);
    CHECK(scale.error().detail.find("1/N with N a power of two") != std::string::npos);
  }
}

TEST_CASE("the footprint counts whole pages of the largest request for every slot of concurrency") {
  const auto requests = requests_of({100, 1000, 65});
  const auto needs = measure(requests, {}, 1024, 64, 4);
  CHECK(needs.tokens == 1165);
  CHECK(needs.bytes == 1165 * 1024);
  CHECK(needs.largest_tokens == 1000);
  CHECK(needs.pool_pages == 16 * 4 + 16);
  CHECK(needs.pool_bytes == 80 * 64 * 1024);
  CHECK(measure(requests, {20}, 1024, 64, 1).pool_pages == 2);
}

TEST_CASE("a small workload is replayed at full size") {
  const auto choice = choose_token_scale(requests_of({100, 1000}), 1024, 64, 4, {gib});
  REQUIRE(choice);
  CHECK(choice->scale == token_scale{0});
  CHECK(choice->reason.find("everything fits at full size") != std::string::npos);
}

TEST_CASE("the pool decides where one request is large, time where all are") {
  auto mixed = requests_of({100'000});
  mixed.resize(60, {0, 1, 0, {}});
  const auto one_large = choose_token_scale(mixed, 65'536, 64, 8, {gib});
  REQUIRE(one_large);
  CHECK(one_large->needs.pool_bytes <= gib);
  CHECK(one_large->reason.find("does not fit in memory") != std::string::npos);

  const auto all_large = choose_token_scale(requests_of({10'000, 10'000}), 131'072, 64, 1, {16 * gib});
  REQUIRE(all_large);
  CHECK(all_large->scale == token_scale{4});
  CHECK(all_large->needs.bytes <= 240'000'000);
  CHECK(all_large->reason.find("take too long") != std::string::npos);
}

TEST_CASE("the chosen scale keeps to the limits and the next larger one would not") {
  const auto requests = built_in_workload(500, 3);
  for (const std::uint64_t bytes_per_token : {23'040u, 70'272u, 131'072u, 327'680u})
    for (const std::uint32_t concurrency : {1u, 8u, 32u})
      for (const std::uint64_t pool : {gib / 4, gib, 4 * gib}) {
        const machine_limits limits{pool};
        const auto choice = choose_token_scale(requests, bytes_per_token, 64, concurrency, limits);
        CAPTURE(bytes_per_token);
        CAPTURE(concurrency);
        CAPTURE(pool);
        const auto fits = [&](const footprint& needs) {
          return needs.pool_bytes <= limits.pool_bytes && needs.bytes <= limits.bytes_per_request_mean * 500;
        };
        if (!choice) {
          CHECK(measure(requests, {20}, bytes_per_token, 64, concurrency).pool_bytes > pool);
          continue;
        }
        CHECK(fits(choice->needs));
        if (choice->scale.shift > 0)
          CHECK_FALSE(fits(measure(requests, {choice->scale.shift - 1}, bytes_per_token, 64, concurrency)));
      }
}

TEST_CASE("no scale helps where one page per request is too much already") {
  const auto choice = choose_token_scale(requests_of({1}), 131'072, 64, 1000, {gib});
  REQUIRE_FALSE(choice);
  CHECK(choice.error().code == errc::limit_exceeded);
  CHECK(choice.error().detail.find("lower --concurrency") != std::string::npos);
}

TEST_CASE("a machine gives a quarter of its available memory, 4 GiB at most") {
  CHECK(limits_of_machine(8 * gib).pool_bytes == 2 * gib);
  CHECK(limits_of_machine(200 * gib).pool_bytes == 4 * gib);
  const auto available = available_memory();
  REQUIRE(available);
  CHECK(*available > 1 << 20);
}

TEST_CASE("bytes are written for people") {
  CHECK(format_bytes(0) == "0 bytes");
  CHECK(format_bytes(1023) == "1023 bytes");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(4 * gib) == "4.0 GiB");
  CHECK(format_bytes(5000 * gib * 1024) == "5000.0 TiB");
}
