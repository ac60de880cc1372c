#include "config/load.hpp"

#include "config/check.hpp"
#include "config/defaults.hpp"
#include "config/json_reader.hpp"
#include "config/keys.hpp"
#include "config/problems.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

namespace handoff {
namespace {

const key_spec* find_key(std::string_view section, std::string_view name) {
  for (const auto& key : all_keys())
    if (key.section == section && key.name == name) return &key;
  return nullptr;
}

std::vector<std::string_view> section_names() {
  std::vector<std::string_view> names;
  for (const auto& key : all_keys())
    if (names.empty() || names.back() != key.section) names.push_back(key.section);
  return names;
}

/// "; did you mean ...?": a near name at the same place, or the same name at another one.
std::string hint_for(std::string_view name, const std::vector<std::string_view>& neighbours) {
  auto near = closest(name, neighbours);
  if (!near.empty()) return fmt::format("; did you mean {}?", near);
  for (const auto& key : all_keys())
    if (key.name == name) return fmt::format("; did you mean {}?", pointer_of(key));
  return "";
}

void wrong_type(const std::string& pointer, const json_value& value, std::string_view wanted,
                problems& found) {
  found.add(errc::config_type, pointer,
            fmt::format("{} has the wrong type: expected {}", display(value), wanted));
}

template <class Number>
void read_number(const key_spec& key, const json_value& value, Number& member, problems& found) {
  if (value.kind == json_kind::negative ||
      (value.kind == json_kind::natural && value.natural > std::numeric_limits<Number>::max()))
    return found.add(errc::config_range, pointer_of(key), range_text(key, display(value)));
  if (value.kind != json_kind::natural)
    return wrong_type(pointer_of(key), value, fmt::format("an integer, {} {}", allowed_values(key), key.unit),
                      found);
  member = static_cast<Number>(value.natural);
}

void read_rules(const key_spec& key, const json_value& value, std::vector<mismatch_rule>& rules,
                problems& found) {
  if (value.kind != json_kind::object) return wrong_type(pointer_of(key), value, allowed_values(key), found);
  for (const auto& [field, action] : value.members) {
    auto pointer = child_pointer(pointer_of(key), field);
    if (action.kind != json_kind::text)
      wrong_type(pointer, action, "\"refuse\" or \"warn\"", found);
    else if (action.text != "refuse" && action.text != "warn")
      found.add(errc::config_range, pointer,
                fmt::format("{} is not allowed: expected refuse or warn", display(action)));
    else
      rules.push_back({field, action.text == "warn" ? mismatch_action::warn : mismatch_action::refuse});
  }
  std::sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.field < b.field; });
}

void read_probabilities(const key_spec& key, const json_value& value, failure_probabilities& members,
                        problems& found) {
  if (value.kind != json_kind::object) return wrong_type(pointer_of(key), value, allowed_values(key), found);
  for (const auto& [name, number] : value.members) {
    auto pointer = child_pointer(pointer_of(key), name);
    auto kind = std::find(failure_kind_names.begin(), failure_kind_names.end(), name);
    if (kind == failure_kind_names.end())
      found.add(errc::config_key, pointer,
                "unknown key" + hint_for(name, {failure_kind_names.begin(), failure_kind_names.end()}));
    else if (number.kind != json_kind::natural && number.kind != json_kind::negative &&
             number.kind != json_kind::real)
      wrong_type(pointer, number, "a number, 0..1", found);
    else
      members[static_cast<std::size_t>(kind - failure_kind_names.begin())] =
          std::strtod(number.text.c_str(), nullptr);
  }
}

void read_value(const key_spec& key, const json_value& value, engine_config& config, problems& found) {
  if (const auto* m32 = std::get_if<uint32_member>(&key.member)) {
    read_number(key, value, (*m32)(config), found);
  } else if (const auto* m64 = std::get_if<uint64_member>(&key.member)) {
    read_number(key, value, (*m64)(config), found);
  } else if (const auto* rules = std::get_if<rules_member>(&key.member)) {
    read_rules(key, value, (*rules)(config), found);
  } else if (const auto* probabilities = std::get_if<probabilities_member>(&key.member)) {
    read_probabilities(key, value, (*probabilities)(config), found);
  } else if (const auto* flag = std::get_if<bool_member>(&key.member)) {
    if (value.kind != json_kind::boolean) return wrong_type(pointer_of(key), value, "true or false", found);
    (*flag)(config) = value.natural != 0;
  } else if (const auto* text = std::get_if<text_member>(&key.member)) {
    if (value.kind != json_kind::text)
      return wrong_type(pointer_of(key), value, "a string, " + allowed_values(key), found);
    (*text)(config) = value.text;
  }
}

void read_section(const json_member& section, engine_config& config, problems& found) {
  auto pointer = child_pointer("", section.key);
  std::vector<std::string_view> names;
  for (const auto& key : all_keys())
    if (key.section == section.key) names.push_back(key.name);
  if (names.empty())
    return found.add(errc::config_key, pointer, "unknown key" + hint_for(section.key, section_names()));
  if (section.value.kind != json_kind::object) return wrong_type(pointer, section.value, "an object", found);
  for (const auto& [name, value] : section.value.members) {
    if (const auto* key = find_key(section.key, name))
      read_value(*key, value, config, found);
    else
      found.add(errc::config_key, child_pointer(pointer, name), "unknown key" + hint_for(name, names));
  }
}

void require_keys(const json_value& root, problems& found) {
  for (const auto& key : all_keys()) {
    if (!is_required(key)) continue;
    const auto* section = root.find(key.section);
    if (!section || (section->kind == json_kind::object && !section->find(key.name)))
      found.add(errc::config_key, pointer_of(key),
                fmt::format("missing: this key is required ({}; {})", allowed_values(key), key.sentence));
  }
}

}  // namespace

expected<engine_config> load_file(const std::string& path) {
  auto text = read_text_file(path, defaults::file_bytes);
  if (!text) return unexpected(text.error());
  return load_text(*text, path);
}

expected<engine_config> load_text(std::string_view text, const std::string& origin) {
  auto root = read_json(text, origin);
  if (!root) return unexpected(root.error());
  engine_config config;
  problems found;
  if (root->kind != json_kind::object) {
    wrong_type("", *root, "an object", found);
    return unexpected(found.result(origin).error());
  }
  for (const auto& section : root->members) read_section(section, config, found);
  require_keys(*root, found);
  check_values(config, found);
  if (found.empty()) check_relations(config, found);  // a wrong value would contradict others for no reason
  if (!found.empty()) return unexpected(found.result(origin).error());
  return config;
}

}  // namespace handoff
