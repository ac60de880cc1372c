#include "tools/replay/report.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace handoff::replay;

namespace {

replay_report good_report() {
  replay_report r;
  r.workload = "built in";
  r.model = "llama-3.1-8b";
  r.token_scale = "1/32";
  r.provider = "tcp";
  r.connections = {"decode: tcp, as asked for"};
  r.seed = 7;
  r.concurrency = 4;
  r.page_tokens = 64;
  r.requests = r.succeeded = 2;
  r.tokens = 300;
  r.pages = 6;
  r.bytes_owned = r.bytes_verified = 3'000'000'000;
  r.bytes_written = 3'000'000'128;
  r.writes = 384;
  r.elapsed_ns = 2'000'000'000;
  r.handoff_ns = {1'500'000, 2'500'000};
  return r;
}

}  // namespace

TEST_CASE("quantiles are values that occurred, by nearest rank") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(quantile({9}, 0.99) == 9);
  std::vector<std::uint64_t> hundred;
  for (std::uint64_t i = 100; i > 0; --i) hundred.push_back(i);
  CHECK(quantile(hundred, 0.5) == 50);
  CHECK(quantile(hundred, 0.99) == 99);
  CHECK(quantile(hundred, 0) == 1);
  CHECK(quantile(hundred, 1) == 100);
}

TEST_CASE("a report is clean only when everything succeeded and every owned byte was verified") {
  CHECK(is_clean(good_report()));
  const auto spoilt = [](auto&& change) {
    auto r = good_report();
    change(r);
    return !is_clean(r);
  };
  CHECK(spoilt([](auto& r) { r.failures["timed_out"] = 1; }));
  CHECK(spoilt([](auto& r) { r.wrong_bytes = 1; }));
  CHECK(spoilt([](auto& r) { r.leaks = 1; }));
  CHECK(spoilt([](auto& r) { r.hung = 1; }));
  CHECK(spoilt([](auto& r) { r.findings.push_back("x"); }));
  CHECK(spoilt([](auto& r) { r.succeeded = 1; }));
  CHECK(spoilt([](auto& r) { r.bytes_verified -= 1; }));
}

TEST_CASE("the table shows every figure") {
  const auto text = to_table(good_report());
  for (const auto* part :
       {"workload              built in", "llama-3.1-8b, token scale 1/32", "2 of 2 succeeded, 4 at once",
        "300 in 6 pages of 64", "3000000128 (2.8 GiB)", "3000000000 of 3000000000 owned", "1.500 GB/s",
        "1.50 ms / 2.50 ms", "writes per request    192.0", "pages per request     3.0",
        "decode: tcp, as asked for", "wrong bytes           0", "leaks                 0",
        "hung rooms            0", "seed                  7"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, "\n", text);
}

TEST_CASE("the JSON says the same") {
  auto r = good_report();
  r.failures["timed_out"] = 2;
  const auto j = to_json(r);
  CHECK(j["requests"] == 2);
  CHECK(j["bytes_verified"] == 3'000'000'000);
  CHECK(j["gigabytes_per_second"] == doctest::Approx(1.5));
  CHECK(j["handoff_p99_ms"] == doctest::Approx(2.5));
  CHECK(j["failures"]["timed_out"] == 2);
  CHECK(j["clean"] == false);
}
