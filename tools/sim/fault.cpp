#include "tools/sim/fault.hpp"

#include <sstream>

#include <fmt/format.h>

namespace handoff::sim {
namespace {

constexpr std::string_view names[fault_count] = {"frame_loss",
                                                 "frame_duplication",
                                                 "frame_reordering",
                                                 "delay",
                                                 "post_refused",
                                                 "post_failed",
                                                 "completion_failed",
                                                 "completion_lost",
                                                 "silent_ends",
                                                 "partition",
                                                 "one_way_partition",
                                                 "control_partition",
                                                 "control_break",
                                                 "freeze",
                                                 "stall",
                                                 "crash_prefill",
                                                 "crash_decode",
                                                 "crash_bootstrap",
                                                 "clock_jump",
                                                 "clock_skew",
                                                 "small_limits",
                                                 "abort",
                                                 "late_call",
                                                 "missing_call",
                                                 "wrong_call"};

}  // namespace

std::string_view to_string(fault kind) {
  return names[static_cast<std::size_t>(kind)];
}

expected<fault_set> parse_faults(const std::string& list) {
  fault_set set;
  if (list.empty()) return fail(errc::invalid_argument, "no fault is named; all, none, or some");
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "all") {
      set.set();
    } else if (word != "none") {
      const bool off = !word.empty() && word.front() == '-';
      const std::string_view name = std::string_view(word).substr(off ? 1 : 0);
      std::size_t kind = 0;
      while (kind < fault_count && names[kind] != name) ++kind;
      if (kind == fault_count)
        return fail(errc::invalid_argument, fmt::format("\"{}\" is no fault; all, none, or some of: {}", word,
                                                        fmt::join(names, ", ")));
      set.set(kind, !off);
    }
  }
  return set;
}

std::string to_string(const fault_set& set) {
  if (set.all()) return "all";
  std::string out;
  for (std::size_t i = 0; i < fault_count; ++i)
    if (set[i]) out += (out.empty() ? "" : ",") + std::string(names[i]);
  return out.empty() ? "none" : out;
}

}  // namespace handoff::sim
