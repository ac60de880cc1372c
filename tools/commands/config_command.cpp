#include "actors/runtime/breakpoint.hpp"
#include "config/load.hpp"
#include "config/show.hpp"
#include "config/token_file.hpp"
#include "tools/commands/commands.hpp"

#include <cstdio>
#include <memory>
#include <string>

#include <fmt/format.h>

namespace handoff::tools {
namespace {

int check_file(const std::string& path) {
  const auto config = load_file(path);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().detail);
    return exit_status(config.error().code);
  }
  // What only a start looks at otherwise.
  error problem;
  if (const auto& token = config->security.token_file; !token.empty()) {
    const auto read = read_token_file(token);
    if (!read)
      problem = read.error();
    else if (!read->warning.empty())
      fmt::print(stderr, "{}: {}\n", path, read->warning);
  }
  if (const auto& where = config->testing.breakpoint; !problem && !where.empty())
    if (const auto valid = parse_breakpoint(where); !valid) problem = valid.error();
  if (problem) {
    fmt::print(stderr, "{}: {}\n", path, problem.detail);
    return exit_status(problem.code);
  }
  fmt::print("{}: engine {} is configured correctly\n", path, config->engine.name);
  return 0;
}

int show_file(const std::string& path) {
  const auto config = load_file(path);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().detail);
    return exit_status(config.error().code);
  }
  fmt::print("{}\n", show(*config));
  return 0;
}

}  // namespace

void add_config(CLI::App& app, int& status) {
  auto* config = app.add_subcommand("config", "Look at an engine's configuration file; nothing is started");
  config->require_subcommand(1);
  config->footer("Examples:\n  handoff config check engine.json\n  handoff config show engine.json | less");
  const auto path = std::make_shared<std::string>();
  auto* checker = config->add_subcommand("check", "Say everything that is wrong with the file");
  checker->add_option("FILE", *path, "An engine's configuration")->required();
  checker->callback([path, &status] { status = check_file(*path); });
  auto* shower = config->add_subcommand("show", "Print every key with its effective value");
  shower->add_option("FILE", *path, "An engine's configuration")->required();
  shower->callback([path, &status] { status = show_file(*path); });
}

}  // namespace handoff::tools
