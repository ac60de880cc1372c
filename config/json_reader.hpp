// Strict JSON -> a small tree that keeps numbers as they were written and the order of keys. Duplicate keys,
// deep nesting and numbers beyond double are errors here, since every file of ours must refuse them.
#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

enum class json_kind : std::uint8_t { null, boolean, natural, negative, real, text, list, object };

struct json_member;

struct json_value {
  json_kind kind = json_kind::null;
  std::uint64_t natural = 0;         ///< kind natural; boolean: 0 or 1
  std::string text;                  ///< kind text; for numbers as written in the file
  std::vector<json_value> items;     ///< kind list
  std::vector<json_member> members;  ///< kind object, in the file's order, keys unique

  const json_value* find(std::string_view key) const;
};

struct json_member {
  std::string key;
  json_value value;
};

/// `origin` (a file's name) begins the error's detail: "engine.json:3:7: ..." for syntax, "engine.json:
/// /transport/window: ..." for duplicate keys. Codes: config_syntax, config_key, config_range.
expected<json_value> read_json(std::string_view text, const std::string& origin);

/// Bounded read of a whole file; missing, a directory, unreadable, or over `bytes_max`: config_syntax.
expected<std::string> read_text_file(const std::string& path, std::size_t bytes_max);

/// "/a/b" + key, with '~' and '/' escaped as RFC 6901 says, and made fit for a terminal.
std::string child_pointer(std::string_view parent, std::string_view key);
/// The value for an error text: scalars as written (long ones cut), "an object", "a list".
std::string display(const json_value& value);

}  // namespace handoff
