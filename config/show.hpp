// The configuration for people: effective values, and the reference of all keys.
#pragma once

#include "config/engine_config.hpp"

#include <string>

namespace handoff {

/// Every key with its effective value as indented JSON; load_text reads it back.
std::string show(const engine_config& config);

/// A markdown table of every key: unit, default, what is allowed, meaning. README.md holds it.
std::string show_reference();

}  // namespace handoff
