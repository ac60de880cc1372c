#include "tools/replay/process_resources.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

namespace handoff::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view shm_folder = "/dev/shm/", our_mark = "handoff-";

void add_if_ours(std::string_view path, std::set<std::string>& names) {
  const auto at = path.find(shm_folder);
  if (at == path.npos) return;
  auto name = path.substr(at + shm_folder.size());
  name = name.substr(0, name.find(" (deleted)"));
  if (name.find(our_mark) != name.npos) names.emplace(name);
}

}  // namespace

std::uint64_t open_descriptors() {
  std::uint64_t count = 0;
  std::error_code problem;
  for (fs::directory_iterator it("/proc/self/fd", problem), end; it != end; it.increment(problem)) ++count;
  return count == 0 ? 0 : count - 1;
}

std::uint64_t file_maps() {
  std::uint64_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.find(" /") != line.npos ? 1 : 0;
  return count;
}

std::vector<std::string> own_shm_names() {
  std::set<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator it("/proc/self/fd", problem), end; it != end; it.increment(problem)) {
    std::error_code gone;
    add_if_ours(fs::read_symlink(it->path(), gone).string(), names);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) add_if_ours(line, names);
  return {names.begin(), names.end()};
}

std::vector<std::string> remaining_shm_names(const std::vector<std::string>& names) {
  std::vector<std::string> remaining;
  std::error_code problem;
  for (const auto& name : names)
    if (fs::exists(fs::path(shm_folder) / name, problem)) remaining.push_back(name);
  return remaining;
}

}  // namespace handoff::replay
