#include "tests/tree/source_tree.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <set>

namespace handoff::tree {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> left_out = {"build", ".git", ".cache", ".vscode", ".idea"};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string_view trimmed(std::string_view text) {
  auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

/// Blanks the comment that starts at `at` and returns the first offset after it.
std::size_t blank_comment(std::string& text, std::size_t at) {
  bool block = text[at + 1] == '*';
  auto end = block ? text.find("*/", at + 2) : text.find('\n', at);
  if (end == std::string::npos)
    end = text.size();
  else if (block)
    end += 2;
  std::replace_if(
      text.begin() + static_cast<std::ptrdiff_t>(at), text.begin() + static_cast<std::ptrdiff_t>(end),
      [](char c) { return c != '\n'; }, ' ');
  return end;
}

/// The first offset after the string or character literal that starts at `at`. Raw strings end at their `)"`.
std::size_t after_literal(const std::string& text, std::size_t at) {
  if (text[at] == '"' && at > 0 && text[at - 1] == 'R') {
    auto open = text.find('(', at);
    auto close =
        open == std::string::npos ? open : text.find(")" + text.substr(at + 1, open - at - 1) + "\"", open);
    return close == std::string::npos ? text.size() : text.find('"', close) + 1;
  }
  for (auto i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == text[at] || text[i] == '\n')
      return i + 1;
  }
  return text.size();
}

bool is_digit_separator(const std::string& text, std::size_t at) {
  return text[at] == '\'' && at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1])) != 0;
}

}  // namespace

source_tree read_tree(const fs::path& root) {
  source_tree tree;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    bool left_out_here = left_out.count(it->path().filename().string()) != 0;
    if (it->is_directory() && left_out_here)
      it.disable_recursion_pending();
    else if (it->is_regular_file() && !left_out_here)
      tree.emplace(fs::relative(it->path(), root).generic_string(), read_file(it->path()));
  }
  return tree;
}

std::vector<include_line> includes_of(std::string_view text) {
  std::vector<include_line> found;
  auto code = without_comments(text);
  std::string_view rest = code;
  for (int line = 1; !rest.empty(); ++line) {
    auto end = std::min(rest.find('\n'), rest.size());
    auto content = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (content.substr(0, 1) != "#") continue;
    content = trimmed(content.substr(1));
    if (content.substr(0, 7) != "include") continue;
    content = trimmed(content.substr(7));
    if (content.empty()) continue;
    bool quoted = content[0] == '"';
    auto close = content.find(quoted ? '"' : '>', 1);
    if (close != std::string_view::npos)
      found.push_back({std::string(content.substr(1, close - 1)), quoted, line});
  }
  return found;
}

std::string without_comments(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size();) {
    if (out[i] == '/' && i + 1 < out.size() && (out[i + 1] == '/' || out[i + 1] == '*'))
      i = blank_comment(out, i);
    else if ((out[i] == '"' || out[i] == '\'') && !is_digit_separator(out, i))
      i = after_literal(out, i);
    else
      ++i;
  }
  return out;
}

int line_of(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

bool is_header(std::string_view path) {
  return path.size() > 4 && path.substr(path.size() - 4) == ".hpp";
}

bool is_cpp(std::string_view path) {
  return is_header(path) || (path.size() > 4 && path.substr(path.size() - 4) == ".cpp") ||
         (path.size() > 3 && path.substr(path.size() - 3) == ".cu");
}

}  // namespace handoff::tree
