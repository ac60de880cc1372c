// A configuration file -> checked values. Strict: unknown, duplicate and missing keys, wrong types, values
// out of range and contradictions are errors; all that are found are reported, one line each, with file, JSON
// pointer, value and what was expected. Keys that a file does not name keep their defaults.
#pragma once

#include "config/engine_config.hpp"
#include "messages/error.hpp"

#include <string>
#include <string_view>

namespace handoff {

expected<engine_config> load_file(const std::string& path);

/// `origin` stands for the file's name in errors.
expected<engine_config> load_text(std::string_view text, const std::string& origin);

}  // namespace handoff
