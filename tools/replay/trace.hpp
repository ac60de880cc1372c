// Requests of a trace: Mooncake's JSON lines and Azure's CSV, told apart by their content, and the workload
// that is built in. Token counts and times only; there is no text in a trace.
#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace handoff::replay {

struct request {
  std::uint64_t timestamp_ms = 0;  ///< since the trace's first request
  std::uint64_t input_tokens = 0, output_tokens = 0;
  std::vector<std::uint64_t> hash_ids;  ///< Mooncake: one per 512 tokens, equal ids = shared prefix
  friend bool operator==(const request&, const request&) = default;
};

/// A trace's line: a prompt of 8 Mi tokens still fits with its hash ids.
inline constexpr std::size_t trace_line_bytes = 256 * 1024;
/// Requests of one replay; a table of them is kept in memory.
inline constexpr std::uint64_t trace_requests_max = 1'000'000;
/// Tokens of one request: ten times the longest context that is served today.
inline constexpr std::uint64_t trace_tokens_max = 16 * 1024 * 1024;

/// The first `requests` requests (fewer where the trace ends before). Every error is invalid_argument and
/// names `name` and the line.
expected<std::vector<request>> read_trace(std::istream& in, const std::string& name, std::uint64_t requests);
expected<std::vector<request>> read_trace_file(const std::string& path, std::uint64_t requests);

/// Input lengths drawn from the quantiles of Mooncake's conversation trace, with a mean of about 12,000.
std::vector<request> built_in_workload(std::uint64_t requests, std::uint64_t seed);

}  // namespace handoff::replay
