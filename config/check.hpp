// The two passes behind check_config, for the loader, which has found problems of its own before.
#pragma once

#include "config/keys.hpp"
#include "config/problems.hpp"

#include <string>
#include <string_view>

namespace handoff {

/// Every value against its key's range and form; keys with a problem already are skipped.
void check_values(engine_config& config, problems& found);
/// Values against each other; only meaningful when each of them is right.
void check_relations(const engine_config& config, problems& found);

/// "70000 is out of range: expected 1..65,536 tokens"
std::string range_text(const key_spec& key, std::string_view value);

}  // namespace handoff
