// The subcommands of `handoff`. Each adds itself to the command line and stores its exit status when it ran.
#pragma once

#include <CLI/CLI.hpp>

namespace handoff::tools {

/// Bad options, files or traces: nothing was started. The same as exit_status of a configuration error.
inline constexpr int exit_usage = 2;
/// A peer is unknown, gone, refuses or does not answer.
inline constexpr int exit_peer = 3;
/// Rooms failed, hung or leaked, or bytes were wrong.
inline constexpr int exit_rooms = 5;

void add_run(CLI::App& app, int& status);
void add_config(CLI::App& app, int& status);
void add_replay(CLI::App& app, int& status);
void add_drain(CLI::App& app, int& status);
void add_sim(CLI::App& app, int& status);

}  // namespace handoff::tools
