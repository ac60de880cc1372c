#include "config/json_reader.hpp"

#include "config/defaults.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace handoff {
namespace {

using json = nlohmann::json;

constexpr std::size_t display_bytes = 60;

/// Quoted and escaped; cut where it is long.
std::string quote(std::string_view text) {
  bool cut = text.size() > display_bytes;
  auto shown = json(text.substr(0, display_bytes)).dump(-1, ' ', true, json::error_handler_t::replace);
  return cut ? shown + "..." : shown;
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  auto before = text.substr(0, std::min(offset, text.size()));
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  auto column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0: the first line
  return fmt::format("{}:{}", line, column);
}

/// The library's text without its own position and code: ours counts lines and columns for editors.
std::string reason_of(const std::string& what) {
  auto position = what.find("column ");
  auto colon = what.find(": ", position == std::string::npos ? what.find(']') : position);
  if (colon != std::string::npos) return what.substr(colon + 2);
  auto bracket = what.find("] ");
  return bracket == std::string::npos ? what : what.substr(bracket + 2);
}

/// Builds the tree from the parser's events; the first problem stops it.
class tree_builder final : public nlohmann::json_sax<json> {
 public:
  tree_builder(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  json_value root;
  error problem;

  bool null() override { return add(json_kind::null, {}); }
  bool boolean(bool value) override { return add(json_kind::boolean, {}, value); }
  bool number_integer(number_integer_t value) override {
    return add(value < 0 ? json_kind::negative : json_kind::natural, std::to_string(value));  // "-0" is 0
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(json_kind::natural, std::to_string(value), value);
  }
  bool number_float(number_float_t, const string_t& written) override {
    return add(json_kind::real, written);
  }
  bool string(string_t& value) override { return add(json_kind::text, std::move(value)); }
  bool binary(binary_t&) override { return stop(errc::config_syntax, "binary data"); }

  bool start_object(std::size_t) override { return open(json_kind::object); }
  bool start_array(std::size_t) override { return open(json_kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& level = levels_.back();
    level.key = name;
    if (level.seen.insert(name).second) return true;
    return stop(errc::config_key, "duplicate key: each key may stand once in its object");
  }

  bool parse_error(std::size_t offset, const std::string& token, const json::exception& cause) override {
    if (dynamic_cast<const json::out_of_range*>(&cause))
      return stop(errc::config_range, fmt::format("{} is beyond any number that is allowed", quote(token)));
    problem = {errc::config_syntax,
               fmt::format("{}:{}: not JSON: {}", origin_, line_and_column(text_, offset ? offset - 1 : 0),
                           reason_of(cause.what())),
               {}};
    return false;
  }

 private:
  struct level {
    json_value* node = nullptr;
    std::string pointer, key;
    std::unordered_set<std::string> seen;
  };

  std::string pointer_here() const {
    if (levels_.empty()) return "";
    const auto& level = levels_.back();
    if (level.node->kind == json_kind::list)
      return child_pointer(level.pointer, std::to_string(level.node->items.size()));
    return child_pointer(level.pointer, level.key);
  }

  bool stop(errc code, const std::string& text) {
    auto pointer = pointer_here();
    problem = {code, fmt::format("{}: {}{}{}", origin_, pointer, pointer.empty() ? "" : ": ", text), {}};
    return false;
  }

  /// Where the next value goes; parents do not move while a child is open, so pointers to them stay good.
  json_value& place(json_kind kind) {
    auto& node = new_node();
    node.kind = kind;
    return node;
  }

  json_value& new_node() {
    if (levels_.empty()) return root;
    auto& parent = *levels_.back().node;
    if (parent.kind == json_kind::list) return parent.items.emplace_back();
    return parent.members.emplace_back(json_member{levels_.back().key, {}}).value;
  }

  bool add(json_kind kind, std::string text, std::uint64_t natural = 0) {
    auto& node = place(kind);
    node.text = std::move(text);
    node.natural = natural;
    return true;
  }

  bool open(json_kind kind) {
    if (levels_.size() >= defaults::file_nesting)
      return stop(errc::config_syntax, fmt::format("nested deeper than {} levels", defaults::file_nesting));
    auto pointer = pointer_here();
    auto& node = place(kind);
    levels_.push_back({&node, std::move(pointer), {}, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& origin_;
  std::vector<level> levels_;
};

}  // namespace

const json_value* json_value::find(std::string_view key) const {
  for (const auto& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

expected<json_value> read_json(std::string_view text, const std::string& origin) {
  if (text.size() > defaults::file_bytes)
    return fail(errc::config_syntax, fmt::format("{}: {} bytes are more than the limit of {} bytes", origin,
                                                 text.size(), defaults::file_bytes));
  tree_builder builder(text, origin);
  if (json::sax_parse(text, &builder)) return std::move(builder.root);
  return unexpected(std::move(builder.problem));
}

expected<std::string> read_text_file(const std::string& path, std::size_t bytes_max) {
  auto refuse = [&](std::string_view why) {
    return fail(errc::config_syntax, fmt::format("{}: cannot be read: {}", path, why));
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return refuse(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return refuse("it is a directory");
  // A pipe without a writer would block for ever.
  if (!S_ISREG(status.st_mode)) return refuse("it is no regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(std::strerror(errno));
  std::string text(bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return refuse("reading failed");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > bytes_max)
    return refuse(fmt::format("it is larger than the limit of {} bytes", bytes_max));
  return text;
}

std::string child_pointer(std::string_view parent, std::string_view key) {
  std::string result(parent);
  result += '/';
  for (char c : key.substr(0, display_bytes)) {
    if (c == '~')
      result += "~0";
    else if (c == '/')
      result += "~1";
    else
      result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return key.size() > display_bytes ? result + "..." : result;
}

std::string display(const json_value& value) {
  switch (value.kind) {
    case json_kind::null:
      return "null";
    case json_kind::boolean:
      return value.natural ? "true" : "false";
    case json_kind::natural:
    case json_kind::negative:
    case json_kind::real:
      return value.text.size() > display_bytes ? value.text.substr(0, display_bytes) + "..." : value.text;
    case json_kind::text:
      return quote(value.text);
    case json_kind::list:
      return "a list";
    case json_kind::object:
      return "an object";
  }
  return "a value";
}

}  // namespace handoff
