#include "config/load.hpp"
#include "config/model_geometry.hpp"
#include "config/model_layout.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/stop_signals.hpp"
#include "tools/replay/pool_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace handoff::tools {
namespace {

struct run_options {
  std::string file;
  std::string role, rank = "0,0,0,0";
  std::uint64_t pages = 64;
};

void log_to_stderr(log_level level, std::string_view event, std::string_view text) {
  constexpr std::string_view names[] = {"debug", "info", "warn", "error"};
  fmt::print(stderr, "{} {}: {}\n", names[static_cast<std::size_t>(level)], event, text);
}

engine_role role_of(const std::string& name) {
  for (const auto role : {engine_role::prefill, engine_role::decode})
    if (name == to_string(role)) return role;
  return engine_role::bootstrap;
}

/// "1,0,0,2" or "dp1pp0cp0tp2".
expected<rank_coord> parse_rank(const std::string& text) {
  // One of them is the size along an axis, so a position ends one below the largest 16-bit number. scanf
  // takes signs and spaces, and at most five digits keep it from overflowing.
  constexpr unsigned position_max = UINT16_MAX - 1;
  const bool plain = text.find_first_of("+- \t\n") == std::string::npos;
  for (const auto* form : {"%5u,%5u,%5u,%5u%n", "dp%5upp%5ucp%5utp%5u%n"}) {
    std::array<unsigned, 4> at{};
    int read = 0;
    if (plain && std::sscanf(text.c_str(), form, &at[0], &at[1], &at[2], &at[3], &read) == 4 &&
        read == static_cast<int>(text.size()) && *std::max_element(at.begin(), at.end()) <= position_max)
      return rank_coord{static_cast<std::uint16_t>(at[0]), static_cast<std::uint16_t>(at[1]),
                        static_cast<std::uint16_t>(at[2]), static_cast<std::uint16_t>(at[3])};
  }
  return fail(errc::invalid_argument,
              fmt::format("--rank {}: expected dp,pp,cp,tp, for example 0,0,0,0 or dp0pp0cp0tp0", text));
}

/// Memory for a rank that has no engine around it.
expected<replay::pool_memory> own_pool(const engine_config& config, std::uint64_t pages) {
  const auto geometry = find_geometry(config.model.name);
  if (!geometry) return unexpected(geometry.error());
  auto layout = make_layout(*geometry, {config.memory.page_tokens, pages, memory_kind::host});
  if (!layout) return unexpected(layout.error());
  return replay::pool_memory::create(std::move(*layout));
}

/// Waits for the open rooms; a second signal ends the wait at once.
error drain_until(runtime& engine, std::chrono::milliseconds bound, const stop_signals& signals) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds step{200};
  for (const auto deadline = clock::now() + bound;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    auto drained = engine.drain(std::clamp(left, std::chrono::milliseconds(0), step));
    if (!drained || left <= step || signals.take()) return drained;
  }
}

error serve(const run_options& o) {
  auto config = load_file(o.file);
  if (!config) return config.error();
  const auto rank = parse_rank(o.rank);
  if (!rank) return rank.error();

  std::optional<replay::pool_memory> memory;  // outlives the runtime
  if (role_of(o.role) != engine_role::bootstrap) {
    auto pool = own_pool(*config, o.pages);
    if (!pool) return pool.error();
    memory.emplace(std::move(*pool));
  }

  const stop_signals signals;
  runtime_options options;
  options.config = *config;
  options.role = role_of(o.role);
  options.rank = *rank;
  options.topology.dp = static_cast<std::uint16_t>(rank->dp + 1);
  options.log = log_to_stderr;
  auto engine = runtime::create(std::move(options));
  if (!engine) return engine.error();
  if (memory)
    if (const auto component = (*engine)->register_pool(memory->describe()); !component)
      return component.error();
  if (auto e = (*engine)->start()) return e;
  fmt::print("{} {} {} serves: control {}, bootstrap {}\n", o.role, config->engine.name, to_string(*rank),
             (*engine)->control_address(), (*engine)->endpoint());
  std::fflush(stdout);
  signals.wait();
  (void)signals.take();
  auto drained = drain_until(**engine, std::chrono::milliseconds(config->timeouts.drain_ms), signals);
  (*engine)->close();
  return drained;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto* run = app.add_subcommand("run", "Serve one engine rank until SIGINT or SIGTERM");
  run->footer(
      "Prints one line with its addresses when it is ready. A signal drains it: no new rooms, and at most\n"
      "timeouts.drain_ms for the open ones (exit status 5 if some are left); a second signal ends it at "
      "once.\n"
      "Prefill and decode ranks serve a pool of their "
      "own\n"
      "for the configured model; an engine that embeds the library brings its pools instead.\n\n"
      "Examples:\n"
      "  handoff run engine.json --role bootstrap\n"
      "  handoff run engine.json --role prefill --rank 0,0,0,0 --pages 256");
  const auto o = std::make_shared<run_options>();
  run->add_option("CONFIG", o->file, "The engine's configuration file")->required();
  run->add_option("--role", o->role, "bootstrap, prefill or decode")
      ->required()
      ->check(CLI::IsMember({"bootstrap", "prefill", "decode"}));
  run->add_option("--rank", o->rank, "dp,pp,cp,tp of this rank")->capture_default_str();
  run->add_option("--pages", o->pages, "Pages of the pool")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1u << 24));
  run->callback([o, &status] {
    const auto problem = serve(*o);
    const bool bad_file = exit_status(problem.code) == exit_usage;  // its lines name the file already
    if (problem) fmt::print(stderr, "{}\n", bad_file ? problem.detail : "handoff run: " + to_string(problem));
    status = problem.code == errc::invalid_argument ? exit_usage
             : problem.code == errc::timed_out      ? exit_rooms  // they outlived the drain
                                                    : exit_status(problem.code);
  });
}

}  // namespace handoff::tools
