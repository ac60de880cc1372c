// The `handoff` command.
#include "tools/commands/commands.hpp"
#include "tools/replay/child_process.hpp"
#include "tools/replay/replay_worker.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>

#include <unistd.h>

namespace {

/// What `replay` starts three times; not for people.
void add_replay_worker(CLI::App& app, int& status) {
  auto* worker = app.add_subcommand("replay-worker", "")->group("");
  const auto parent = std::make_shared<pid_t>();
  worker->add_option("PARENT", *parent)->required();
  worker->callback([parent, &status] {
    status = 1;
    if (handoff::replay::die_with_parent(*parent))
      status = handoff::replay::run_worker(STDIN_FILENO, STDOUT_FILENO);
  });
}

/// What was printed may still be on its way; a full disk is not to pass for success.
int with_output_written(int status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  if (written) return status;
  std::fprintf(stderr, "handoff: standard output cannot be written\n");
  return status == 0 ? 1 : status;
}

}  // namespace

int main(int argc, char** argv) {
  // A peer's closed pipe is an error of write(), not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("handoff moves a request's KV cache from a prefill process to a decode process.", "handoff");
  app.set_version_flag("--version", HANDOFF_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 fine; 2 bad options or configuration; 3 a peer is unknown, gone or refuses; 4 no "
      "usable\n"
      "provider; 5 rooms failed; 1 anything else.\n\n"
      "Examples:\n"
      "  handoff replay\n"
      "  handoff sim --rooms 20000 --faults all\n"
      "  handoff config check engine.json\n"
      "  handoff run engine.json --role bootstrap");
  int status = 0;
  handoff::tools::add_run(app, status);
  handoff::tools::add_config(app, status);
  handoff::tools::add_replay(app, status);
  handoff::tools::add_drain(app, status);
  handoff::tools::add_sim(app, status);
  add_replay_worker(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return with_output_written(app.exit(e) == 0 ? 0 : handoff::tools::exit_usage);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "handoff: %s\n", e.what());
    return 1;
  }
  return with_output_written(status);
}
