// What a process holds that outlives mistakes: open descriptors and names in /dev/shm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace handoff::replay {

/// Open descriptors of this process, the one for counting left out.
std::uint64_t open_descriptors();

/// Mappings of files into this process; memory without a file comes and goes with every large block.
std::uint64_t file_maps();

/// Files in /dev/shm that this process has open or mapped and that handoff made, sorted, without the path.
std::vector<std::string> own_shm_names();

/// Which of `names` are still there.
std::vector<std::string> remaining_shm_names(const std::vector<std::string>& names);

}  // namespace handoff::replay
