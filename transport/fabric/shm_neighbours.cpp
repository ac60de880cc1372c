#include "transport/fabric/shm_neighbours.hpp"

#include "transport/fabric/endpoint.hpp"
#include "transport/fabric/shm_files.hpp"

#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace handoff::transport::fabric {
namespace {

struct neighbour {
  std::set<std::string> talks_to;
  endpoint* closed = nullptr;
};

struct registry {
  std::mutex mutex;
  std::map<std::string, neighbour> endpoints;  // open, or kept
  std::set<std::string> owners;                // what names of this process's endpoints begin with
};

/// Never destroyed: endpoints may be closed by destructors of other statics.
registry& the_registry() {
  static auto* r = new registry;
  return *r;
}

/// All that are connected with `name`, directly or through others; empty while one of them is open.
std::vector<std::string> all_closed(const registry& r, const std::string& name) {
  std::set<std::string> seen = {name};
  std::vector<std::string> found = {name};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& n = r.endpoints.at(found[i]);
    if (n.closed == nullptr) return {};
    for (const auto& next : n.talks_to)
      if (seen.insert(next).second) found.push_back(next);
  }
  return found;
}

}  // namespace

void enter_neighbour(const std::string& name) {
  auto& r = the_registry();
  std::lock_guard guard(r.mutex);
  r.endpoints.try_emplace(name);
  r.owners.insert(shm_files::owner_of(name));
}

bool link_neighbours(const std::string& local, const std::string& peer) {
  auto& r = the_registry();
  std::lock_guard guard(r.mutex);
  auto there = r.endpoints.find(peer);
  if (there == r.endpoints.end()) return !r.owners.contains(shm_files::owner_of(peer));
  there->second.talks_to.insert(local);
  r.endpoints.at(local).talks_to.insert(peer);
  return there->second.closed == nullptr;
}

void retire_neighbour(endpoint* closed) {
  auto& r = the_registry();
  std::vector<endpoint*> ended;
  {
    std::lock_guard guard(r.mutex);
    r.endpoints.at(closed->shm_name()).closed = closed;
    for (const auto& name : all_closed(r, closed->shm_name())) {
      ended.push_back(r.endpoints.at(name).closed);
      r.endpoints.erase(name);
    }
  }
  // An address vector forgets its peers' mappings when it closes, after all who look at them.
  for (auto* e : ended) e->close_endpoint();
  for (auto* e : ended) delete e;
}

}  // namespace handoff::transport::fabric
