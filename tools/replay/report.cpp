#include "tools/replay/report.hpp"

#include "tools/replay/token_scale.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace handoff::replay {
namespace {

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

/// Of what was verified: the run's useful rate, everything included.
double gigabytes_per_second(const replay_report& r) {
  return r.elapsed_ns == 0 ? 0 : static_cast<double>(r.bytes_verified) / static_cast<double>(r.elapsed_ns);
}

double per_request(std::uint64_t count, const replay_report& r) {
  return r.succeeded == 0 ? 0 : static_cast<double>(count) / static_cast<double>(r.succeeded);
}

double milliseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

}  // namespace

std::uint64_t quantile(std::vector<std::uint64_t> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto index = std::min(values.size() - 1, rank == 0 ? 0 : rank - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

bool is_clean(const replay_report& r) {
  return r.failures.empty() && r.wrong_bytes == 0 && r.leaks == 0 && r.hung == 0 && r.findings.empty() &&
         r.succeeded == r.requests && r.bytes_verified == r.bytes_owned;
}

std::string to_table(const replay_report& r) {
  std::string text;
  const auto row = [&](std::string_view name, const std::string& value) {
    fmt::format_to(std::back_inserter(text), "  {:<22}{}\n", name, value);
  };
  row("workload", r.workload);
  row("model", fmt::format("{}, token scale {}", r.model, r.token_scale));
  row("requests", fmt::format("{} of {} succeeded, {} at once", r.succeeded, r.requests, r.concurrency));
  row("tokens", fmt::format("{} in {} pages of {}", r.tokens, r.pages, r.page_tokens));
  row("bytes moved",
      fmt::format("{} ({}), metadata rows included", r.bytes_written, format_bytes(r.bytes_written)));
  row("bytes verified", fmt::format("{} of {} owned", r.bytes_verified, r.bytes_owned));
  row("rate", fmt::format("{:.3f} GB/s, filling and verifying included ({:.1f} s)", gigabytes_per_second(r),
                          seconds(r.elapsed_ns)));
  row("handoff p50 / p99", fmt::format("{:.2f} ms / {:.2f} ms", milliseconds(quantile(r.handoff_ns, 0.5)),
                                       milliseconds(quantile(r.handoff_ns, 0.99))));
  row("writes per request", fmt::format("{:.1f}", per_request(r.writes, r)));
  row("pages per request", fmt::format("{:.1f}", per_request(r.pages, r)));
  row("provider", r.provider);
  for (const auto& connection : r.connections) row("", connection);
  if (r.failures.empty()) row("failures", "0");
  for (const auto& [reason, count] : r.failures) row("failures", fmt::format("{} x {}", count, reason));
  row("wrong bytes", fmt::format("{}", r.wrong_bytes));
  row("leaks", fmt::format("{}", r.leaks));
  row("hung rooms", fmt::format("{}", r.hung));
  row("seed", fmt::format("{}", r.seed));
  return text;
}

nlohmann::json to_json(const replay_report& r) {
  return {{"workload", r.workload},
          {"model", r.model},
          {"token_scale", r.token_scale},
          {"provider", r.provider},
          {"connections", r.connections},
          {"seed", r.seed},
          {"concurrency", r.concurrency},
          {"page_tokens", r.page_tokens},
          {"pool_pages", r.pool_pages},
          {"requests", r.requests},
          {"succeeded", r.succeeded},
          {"tokens", r.tokens},
          {"pages", r.pages},
          {"bytes_owned", r.bytes_owned},
          {"bytes_verified", r.bytes_verified},
          {"bytes_written", r.bytes_written},
          {"writes", r.writes},
          {"writes_per_request", per_request(r.writes, r)},
          {"elapsed_s", seconds(r.elapsed_ns)},
          {"gigabytes_per_second", gigabytes_per_second(r)},
          {"handoff_p50_ms", milliseconds(quantile(r.handoff_ns, 0.5))},
          {"handoff_p99_ms", milliseconds(quantile(r.handoff_ns, 0.99))},
          {"failures", r.failures},
          {"wrong_bytes", r.wrong_bytes},
          {"leaks", r.leaks},
          {"hung", r.hung},
          {"findings", r.findings},
          {"clean", is_clean(r)}};
}

}  // namespace handoff::replay
