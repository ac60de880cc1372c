#include "config/show.hpp"

#include "config/keys.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace handoff {
namespace {

using json = nlohmann::ordered_json;

json value_of(const key_spec& key, engine_config& config) {
  if (const auto* rules = std::get_if<rules_member>(&key.member)) {
    auto object = json::object();
    for (const auto& rule : (*rules)(config))
      object[rule.field] = rule.action == mismatch_action::warn ? "warn" : "refuse";
    return object;
  }
  if (const auto* probabilities = std::get_if<probabilities_member>(&key.member)) {
    auto object = json::object();
    for (std::size_t i = 0; i < failure_kind_count; ++i)
      object[std::string(failure_kind_names[i])] = (*probabilities)(config)[i];
    return object;
  }
  return std::visit(
      [&](auto member) -> json {
        if constexpr (std::is_same_v<decltype(member), rules_member> ||
                      std::is_same_v<decltype(member), probabilities_member>)
          return nullptr;  // handled above
        else
          return member(config);
      },
      key.member);
}

std::string default_of(const key_spec& key, engine_config& defaults_only) {
  if (is_required(key)) return "required";
  return fmt::format("`{}`", value_of(key, defaults_only).dump());
}

}  // namespace

std::string show(const engine_config& config) {
  auto copy = config;  // keys reach members of a mutable configuration only
  json root;
  for (const auto& key : all_keys())
    root[std::string(key.section)][std::string(key.name)] = value_of(key, copy);
  return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string show_reference() {
  engine_config defaults_only;
  std::string table = "| key | default | unit | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const auto& key : all_keys())
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", pointer_of(key), default_of(key, defaults_only),
                         key.unit, allowed_values(key), key.sentence);
  return table;
}

}  // namespace handoff
