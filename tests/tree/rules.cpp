#include "tests/tree/rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace handoff::tree {
namespace {

constexpr std::array<std::string_view, 6> folders = {"messages", "config", "transport",
                                                     "actors",   "tools",  "tests"};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

/// Where the first part of `path` stands in `folders`; folders.size() for a file outside of them.
std::size_t rank_of(std::string_view path) {
  auto slash = path.find('/');
  auto first = path.substr(0, slash);
  if (slash == std::string_view::npos) return folders.size();
  return static_cast<std::size_t>(std::find(folders.begin(), folders.end(), first) - folders.begin());
}

bool in_source_folder(std::string_view path) {
  return rank_of(path) < folders.size();
}

/// A library, how its headers' names start, and the places (path prefixes; "*x" a suffix) that may include
/// them.
struct library_home {
  std::string_view library;
  std::vector<std::string_view> headers;
  std::vector<std::string_view> places;
};

const std::vector<library_home>& library_homes_table() {
  static const std::vector<library_home> table = {
      {"libfabric", {"rdma/"}, {"transport/fabric/", "tools/bench/", "tests/transport/"}},
      {"CUDA", {"cuda", "cub/", "nvml", "nvtx"}, {"transport/memory/", "*.cu"}},
      {"doctest", {"doctest"}, {"tests/"}},
      {"CLI11", {"CLI/"}, {"tools/", "tests/tools/"}},
      {"CAF",
       {"caf/"},
       {"messages/type_ids.hpp", "messages/caf.hpp", "actors/", "tools/", "tests/actors/", "tests/tools/",
        "tests/support/"}},
  };
  return table;
}

bool allowed(std::string_view path, const std::vector<std::string_view>& places) {
  return std::any_of(places.begin(), places.end(), [path](std::string_view place) {
    return place[0] == '*' ? ends_with(path, place.substr(1)) : starts_with(path, place);
  });
}

bool nlohmann_allowed(std::string_view path) {
  return starts_with(path, "tools/") || starts_with(path, "tests/") ||
         (starts_with(path, "config/") && ends_with(path, ".cpp"));
}

bool is_name_char(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// Lines of `path` where one of `words` stands, not as a part of a longer name.
void find_words(const std::string& path, std::string_view code, const std::vector<std::string_view>& words,
                std::string_view rule, violations& out) {
  for (auto word : words) {
    for (auto at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
      auto end = at + word.size();
      bool joined = (at > 0 && is_name_char(word.front()) && is_name_char(code[at - 1])) ||
                    (end < code.size() && is_name_char(word.back()) && is_name_char(code[end]));
      if (!joined) out.push_back(fmt::format("{}:{}: '{}': {}", path, line_of(code, at), word, rule));
    }
  }
}

std::string stem_of(std::string_view path) {
  return std::string(path.substr(0, path.rfind('.')));
}

/// Every project header that `path` reaches, with the chain of includes that leads there.
void reach(const source_tree& tree, const std::string& path, const std::string& chain,
           std::map<std::string, std::string>& reached) {
  auto file = tree.find(path);
  if (file == tree.end() || !reached.emplace(path, chain).second) return;
  for (const auto& include : includes_of(file->second))
    if (include.quoted) reach(tree, include.name, chain + " -> " + include.name, reached);
}

const std::vector<std::string_view> locks = {
    "<mutex>",     "<shared_mutex>", "<atomic>",    "<thread>",  "<condition_variable>", "<semaphore>",
    "<future>",    "std::mutex",     "std::atomic", "sleep_for", "sleep_until",          "usleep",
    "std::thread", "std::jthread",   "std::async",  "nanosleep", "pthread_mutex_t"};

const std::vector<std::string_view> impure = {
    "caf::",         "steady_clock",  "system_clock", "high_resolution_clock",
    "clock_gettime", "<iostream>",    "<fstream>",    "<filesystem>",
    "std::cout",     "std::cerr",     "getenv",       "<random>",
    "gettimeofday",  "<sys/socket.h>"};

}  // namespace

violations folder_order(const source_tree& tree) {
  violations out;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path) || !in_source_folder(path)) continue;
    for (const auto& include : includes_of(text)) {
      auto from = rank_of(path), to = rank_of(include.name);
      if (include.quoted && to == folders.size())
        out.push_back(
            fmt::format("{}:{}: \"{}\" does not start with a folder of the project; name headers "
                        "from the root, and other libraries' in <>",
                        path, include.line, include.name));
      else if (to < folders.size() && to > from)
        out.push_back(
            fmt::format("{}:{}: {}/ may not include \"{}\": messages <- config <- transport <- "
                        "actors <- tools",
                        path, include.line, folders[from], include.name));
    }
  }
  return out;
}

violations library_homes(const source_tree& tree) {
  violations out;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path)) continue;
    for (const auto& include : includes_of(text)) {
      if (starts_with(include.name, "nlohmann/") && !nlohmann_allowed(path))
        out.push_back(fmt::format("{}:{}: <{}>: nlohmann stays in config/*.cpp, tools/ and tests/", path,
                                  include.line, include.name));
      for (const auto& home : library_homes_table()) {
        bool of_library = std::any_of(home.headers.begin(), home.headers.end(),
                                      [&](auto prefix) { return starts_with(include.name, prefix); });
        if (of_library && !allowed(path, home.places))
          out.push_back(fmt::format("{}:{}: <{}>: {} stays in {}", path, include.line, include.name,
                                    home.library, fmt::join(home.places, ", ")));
      }
    }
  }
  return out;
}

violations actors_without_locks(const source_tree& tree) {
  violations out;
  for (const auto& [path, text] : tree)
    if (is_cpp(path) && starts_with(path, "actors/") && !starts_with(path, "actors/runtime/"))
      find_words(path, without_comments(text), locks, "no lock, atomic, sleep or thread in actors/", out);
  return out;
}

violations pure_machines(const source_tree& tree, const std::set<std::string>& machines) {
  violations out;
  std::set<std::string> stems;
  for (const auto& name : machines) stems.insert(stem_of(name));
  for (const auto& [path, text] : tree) {
    bool machine = path.find("_machine.") != std::string::npos || stems.count(stem_of(path)) != 0;
    if (!is_cpp(path) || !starts_with(path, "actors/") || !machine) continue;
    std::map<std::string, std::string> reached;
    reach(tree, path, path, reached);
    for (const auto& [name, chain] : reached) {
      for (const auto& include : includes_of(tree.at(name)))
        if (starts_with(include.name, "caf/"))
          out.push_back(fmt::format("{}:{}: <{}>: a pure machine reaches CAF: {}", name, include.line,
                                    include.name, chain));
    }
    find_words(path, without_comments(text), impure, "a machine decides from its arguments alone", out);
    find_words(path, without_comments(text), locks, "a machine has no thread", out);
  }
  return out;
}

violations guarded_headers(const source_tree& tree) {
  violations out;
  for (const auto& [path, text] : tree)
    if (is_header(path) && in_source_folder(path) && text.find("#pragma once\n") == std::string::npos)
      out.push_back(fmt::format("{}:1: a header needs '#pragma once'", path));
  return out;
}

violations own_header_first(const source_tree& tree) {
  violations out;
  for (const auto& [path, text] : tree) {
    const auto header = stem_of(path) + ".hpp";
    if (!is_cpp(path) || is_header(path) || !in_source_folder(path) || tree.count(header) == 0) continue;
    const auto includes = includes_of(text);
    if (includes.empty() || includes.front().name != header)
      out.push_back(fmt::format("{}:{}: \"{}\" comes first", path,
                                includes.empty() ? 1 : includes.front().line, header));
  }
  return out;
}

violations banned_words(const source_tree& tree) {
  // Written in pieces, or this file would be its own finding.
  static const std::vector<std::string_view> words = {
      "TO"
      "DO",
      "FIX"
      "ME",
      "XX"
      "X",
      "not "
      "implemented"};
  static const std::vector<std::string_view> paths = {
      "/wo"
      "rk/",
      "/ho"
      "me/",
      "/tm"
      "p/",
      "/ro"
      "ot/"};
  violations out;
  for (const auto& [path, text] : tree) {
    find_words(path, text, words, "finish it or leave it out", out);
    for (auto word : paths)
      for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
        out.push_back(fmt::format("{}:{}: '{}': no path of one machine", path, line_of(text, at), word));
  }
  return out;
}

violations folder_readmes(const source_tree& tree) {
  std::set<std::string> needed;
  for (const auto& [path, text] : tree) {
    if (!is_cpp(path) || !in_source_folder(path)) continue;
    auto first = path.find('/'), second = path.find('/', first + 1);
    needed.insert(path.substr(0, first));
    if (second != std::string::npos) needed.insert(path.substr(0, second));
  }
  violations out;
  for (const auto& folder : needed) {
    auto readme = tree.find(folder + "/README.md");
    if (readme == tree.end()) {
      out.push_back(fmt::format("{}/README.md:1: missing: say what belongs in this folder", folder));
      continue;
    }
    auto lines = std::count(readme->second.begin(), readme->second.end(), '\n');
    if (lines < 8 || lines > 80)
      out.push_back(fmt::format("{}/README.md:1: {} lines, 8 to 80 are asked for", folder, lines));
  }
  return out;
}

std::vector<std::string> long_files(const source_tree& tree) {
  std::vector<std::string> out;
  for (const auto& [path, text] : tree) {
    auto lines = std::count(text.begin(), text.end(), '\n');
    if (is_cpp(path) && lines > 500) out.push_back(fmt::format("{}: {} lines", path, lines));
  }
  return out;
}

}  // namespace handoff::tree
