// The project's own files as text, for checks on the tree.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace handoff::tree {

/// Path relative to the project's root, with '/' between its parts -> the file's bytes.
using source_tree = std::map<std::string, std::string>;

/// Everything under the source folders and beside them; build outputs and version control are left out.
source_tree read_tree(const std::filesystem::path& root);

/// One `#include` line. Quoted names are the project's, others stand in angle brackets.
struct include_line {
  std::string name;
  bool quoted = false;
  int line = 0;
};
std::vector<include_line> includes_of(std::string_view text);

/// The same text with comments blanked out; line numbers and string literals stay.
std::string without_comments(std::string_view text);

/// The line of `offset`, counted from 1.
int line_of(std::string_view text, std::size_t offset);

bool is_cpp(std::string_view path);
bool is_header(std::string_view path);

}  // namespace handoff::tree
