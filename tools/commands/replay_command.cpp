#include "config/model_geometry.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/stop_signals.hpp"
#include "tools/replay/router.hpp"
#include "tools/replay/token_scale.hpp"
#include "tools/replay/trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace handoff::tools {
namespace {

using namespace replay;

struct replay_options {
  std::string trace, model = "llama-3.1-8b", scale = "auto", provider = "auto", sabotage = "none", json;
  std::uint64_t requests = 200, seed = 1;
  std::uint32_t concurrency = 8, timeout_s = 30, silence_s = 10;
};

constexpr std::uint32_t page_tokens = defaults::page_tokens;

expected<std::vector<request>> load_requests(const replay_options& o) {
  if (o.trace.empty()) return built_in_workload(o.requests, o.seed);
  return read_trace_file(o.trace, o.requests);
}

expected<scale_choice> choose_scale(const replay_options& o, const std::vector<request>& requests,
                                    std::uint64_t bytes_per_token) {
  const auto available = available_memory();
  if (o.scale == "auto") {
    if (!available) return unexpected(available.error());
    return choose_token_scale(requests, bytes_per_token, page_tokens, o.concurrency,
                              limits_of_machine(*available));
  }
  const auto scale = parse_token_scale(o.scale);
  if (!scale) return unexpected(scale.error());
  const auto needs = measure(requests, *scale, bytes_per_token, page_tokens, o.concurrency);
  if (available && needs.pool_bytes > *available / 2)
    return fail(
        errc::limit_exceeded,
        fmt::format("--token-scale {}: a pool of {} on either side for {} requests at once does not fit into "
                    "{} of available memory; take auto or a smaller scale",
                    o.scale, format_bytes(needs.pool_bytes), o.concurrency, format_bytes(*available)));
  return scale_choice{
      *scale, needs,
      fmt::format("token scale {} (as asked for): {} tokens, {} to move; pool {} pages, {} on "
                  "either side",
                  to_string(*scale), needs.tokens, format_bytes(needs.bytes), needs.pool_pages,
                  format_bytes(needs.pool_bytes))};
}

/// Found before the replay rather than after it.
error check_writable(const std::string& path) {
  if (path.empty()) return {};
  struct stat info {};
  const auto folder = std::filesystem::path(path).parent_path();
  const bool there = stat(path.c_str(), &info) == 0;
  const auto where = there ? path : folder.empty() ? std::string(".") : folder.string();
  if (there && S_ISDIR(info.st_mode)) return {errc::invalid_argument, path + ": is a directory", {}};
  if (access(where.c_str(), W_OK) == 0) return {};
  return {errc::invalid_argument,
          fmt::format("--json {}: {}: {}", path, where, std::generic_category().message(errno)),
          {}};
}

struct prepared {
  replay_plan plan;
  replay_report report;
  std::string choice;
};

/// Everything that can be wrong with what was asked for is found here, before anything is started.
expected<prepared> prepare(const replay_options& o) {
  if (auto e = check_writable(o.json)) return unexpected(std::move(e));
  const auto geometry = find_geometry(o.model);
  if (!geometry) return unexpected(geometry.error());
  const auto sabotage = parse_sabotage_kind(o.sabotage);
  if (!sabotage) return unexpected(sabotage.error());
  const auto requests = load_requests(o);
  if (!requests) return unexpected(requests.error());
  const auto bytes = bytes_per_token(*geometry);
  const auto choice = choose_scale(o, *requests, bytes);
  if (!choice) return unexpected(choice.error());

  prepared p;
  p.choice = choice->reason;
  p.plan.model = geometry->name;
  p.plan.provider = o.provider;
  p.plan.bytes_per_token = bytes;
  p.plan.page_tokens = page_tokens;
  p.plan.concurrency = o.concurrency;
  p.plan.timeout_s = o.timeout_s;
  p.plan.silence_s = o.silence_s;
  p.plan.pool_pages = choice->needs.pool_pages;
  p.plan.seed = o.seed;
  p.plan.sabotage = *sabotage;
  for (const auto& r : *requests) p.plan.tokens.push_back(choice->scale.apply(r.input_tokens));

  p.report.workload = o.trace.empty() ? "built in (lengths of Mooncake's conversation trace)" : o.trace;
  p.report.model = geometry->name;
  p.report.token_scale = to_string(choice->scale);
  p.report.provider = o.provider;
  p.report.seed = o.seed;
  p.report.concurrency = o.concurrency;
  p.report.page_tokens = page_tokens;
  p.report.pool_pages = p.plan.pool_pages;
  return p;
}

bool write_json(const std::string& path, const replay_report& report, const error& problem) {
  auto result = to_json(report);
  result["error"] = problem ? to_string(problem) : "";
  std::ofstream out(path);
  out << result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  out.close();
  if (!out) fmt::print(stderr, "handoff replay: {} cannot be written\n", path);
  return static_cast<bool>(out);
}

int replay(const replay_options& o) {
  const stop_signals signals;
  auto p = prepare(o);
  if (!p) {
    fmt::print(stderr, "handoff replay: {}\n", p.error().detail);
    return exit_usage;
  }
  const auto say = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  say(p->choice);
  const auto problem = router(std::move(p->plan), signals.fd(), say).run(p->report);

  const bool clean = !problem && is_clean(p->report);
  say(fmt::format("\n{}", to_table(p->report)));
  for (const auto& finding : p->report.findings) fmt::print(stderr, "found: {}\n", finding);
  if (problem) fmt::print(stderr, "handoff replay: {}\n", to_string(problem));
  const bool written = o.json.empty() || write_json(o.json, p->report, problem);
  if (clean) return written ? 0 : exit_status(errc::io);
  fmt::print(stderr, "handoff replay: failed, seed {}\n", o.seed);
  const bool rooms_failed = problem.code == errc::limit_exceeded;
  return problem && !rooms_failed ? std::max(1, exit_status(problem.code)) : exit_rooms;
}

}  // namespace

void add_replay(CLI::App& app, int& status) {
  auto* command = app.add_subcommand(
      "replay",
      "Hand over the requests of a trace between three processes on this machine, verify every byte");
  command->footer(
      "Bootstrap, prefill and decode are three processes of this program. Zero wrong bytes, leaks, failed "
      "and hung\n"
      "rooms: exit status 0. 2: bad options or trace; 3: a process died or refused; 4: no usable provider;\n"
      "5: rooms failed or hung, bytes were wrong, something leaked; 1: anything else.\n\n"
      "Examples:\n"
      "  handoff replay\n"
      "  handoff replay --trace mooncake_conversation.jsonl --requests 500 --model llama-3.1-8b --provider "
      "tcp\n"
      "  handoff replay --requests 40 --model smollm2-135m --token-scale 1/32 --sabotage flip-byte");
  const auto o = std::make_shared<replay_options>();
  command->add_option("--trace", o->trace, "Mooncake JSONL or Azure CSV; a built-in workload without it");
  command->add_option("--model", o->model, fmt::format("{}", fmt::join(geometry_names(), ", ")))
      ->capture_default_str();
  command->add_option("--requests", o->requests, "Requests to replay, from the start of the trace")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, trace_requests_max));
  command->add_option("--token-scale", o->scale, "auto, 1, or 1/N: every request's tokens times this")
      ->capture_default_str();
  command->add_option("--concurrency", o->concurrency, "Requests under way at once")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  command->add_option("--provider", o->provider, "auto, tcp or shm")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "tcp", "shm"}));
  command->add_option("--seed", o->seed, "Of lengths, room ids, page ids, bytes and faults")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{std::numeric_limits<std::int64_t>::max()}))
      ->capture_default_str();
  command->add_option("--timeout-s", o->timeout_s, "Bound of every phase of a room, in seconds")
      ->capture_default_str()
      ->check(CLI::Range(1u, 3600u));
  command->add_option("--silence-s", o->silence_s, "A process that says nothing for so long ends the replay")
      ->capture_default_str()
      ->check(CLI::Range(1u, 3600u));
  command->add_option("--json", o->json, "Write the result to this file as well");
  command
      ->add_option("--sabotage", o->sabotage,
                   "Do harm once, the replay must notice: flip-byte, skip-page, swap-rooms, stale-page, "
                   "leak-lease, drop-room-done")
      ->capture_default_str();
  command->callback([o, &status] { status = replay(*o); });
}

}  // namespace handoff::tools
