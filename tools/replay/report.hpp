// What a replay found: the table for people, the same as JSON, and the verdict. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace handoff::replay {

/// Nearest-rank quantile of `values` (0 for none); `share` in [0, 1].
std::uint64_t quantile(std::vector<std::uint64_t> values, double share);

struct replay_report {
  // what was asked for
  std::string workload, model, token_scale, provider;
  std::uint64_t seed = 0;
  std::uint32_t concurrency = 0, page_tokens = 0;
  std::uint64_t pool_pages = 0;
  // what was done
  std::uint64_t requests = 0, succeeded = 0;
  std::uint64_t tokens = 0, pages = 0;
  std::uint64_t bytes_owned = 0;     ///< tokens of succeeded rooms x bytes per token
  std::uint64_t bytes_verified = 0;  ///< compared with the pattern, byte by byte, at the decode side
  std::uint64_t bytes_written = 0,
                writes = 0;  ///< as the prefill side's transport counted, metadata rows included
  std::uint64_t elapsed_ns = 0;
  std::vector<std::uint64_t> handoff_ns;  ///< per succeeded room: both sides started -> success at decode
  std::vector<std::string> connections;   ///< peers and the provider that was used, with its reason
  // what went wrong
  std::map<std::string, std::uint64_t> failures;  ///< rooms by reason
  std::uint64_t wrong_bytes = 0, leaks = 0, hung = 0;
  std::vector<std::string>
      findings;  ///< each names room, layer and page, or the resource; the first ones only
};

/// Findings kept; the counts go on.
inline constexpr std::size_t findings_max = 20;

/// No finding of any kind, and every byte that the rooms own was verified.
bool is_clean(const replay_report& report);
std::string to_table(const replay_report& report);
nlohmann::json to_json(const replay_report& report);

}  // namespace handoff::replay
