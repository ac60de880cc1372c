// Where log lines go: the embedder's function, the only place that the library writes to.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace handoff {

/// By volume: error and warn for people on call, info for every peer and start, debug for every room.
enum class log_level : std::uint8_t { debug, info, warn, error };

/// Called from the runtime's threads, one line at a time per thread; `event` is a stable id like
/// "peer-ready".
using log_sink = std::function<void(log_level, std::string_view event, std::string_view text)>;

}  // namespace handoff
