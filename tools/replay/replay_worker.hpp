// The process behind one engine of a replay: an engine's scheduler loop around a runtime, steered by lines on
// its standard input.
#pragma once

namespace handoff::replay {

/// @return the process's exit status
int run_worker(int input, int output);

}  // namespace handoff::replay
