// The texts of config/models/*.json, as they were when the library was built.
#pragma once

#include <span>
#include <string_view>

namespace handoff {

struct builtin_model {
  std::string_view name, json;
};

/// Sorted by name.
std::span<const builtin_model> builtin_models();

}  // namespace handoff
