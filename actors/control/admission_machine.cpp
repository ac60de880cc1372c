#include "actors/control/admission_machine.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff::control {

admission_machine::verdict admission_machine::arrived(std::uint64_t connection, const std::string& source,
                                                      time_point now) {
  auto refuse = [](std::string detail) { return verdict{{errc::limit_exceeded, std::move(detail), {}}, {}}; };
  bool full = connections() >= context_.connections_max;
  if (full && unauthenticated_.empty())
    return refuse(fmt::format("limits.control_connections = {} are open", context_.connections_max));
  if (!take(source, now))
    return refuse(fmt::format("{} opens more than limits.control_rate = {} a second", source,
                              context_.per_source.per_second));
  verdict v;
  if (full || unauthenticated_.size() >= context_.unauthenticated_max) {
    v.evicted = unauthenticated_.front();
    unauthenticated_.pop_front();
  }
  unauthenticated_.push_back(connection);
  return v;
}

void admission_machine::authenticated(std::uint64_t connection) {
  if (std::erase(unauthenticated_, connection) > 0) authenticated_.insert(connection);
}

void admission_machine::ended(std::uint64_t connection) {
  std::erase(unauthenticated_, connection);
  authenticated_.erase(connection);
}

bool admission_machine::take(const std::string& source, time_point now) {
  if (!sources_.contains(source) && sources_.size() >= context_.sources_max) forget_sources(now);
  return sources_[source].take(context_.per_source, now);
}

/// Full buckets say nothing; if there are none, the one that is nearest to it goes.
void admission_machine::forget_sources(time_point now) {
  if (std::erase_if(sources_, [&](const auto& s) { return s.second.full_at() <= now; }) > 0) return;
  sources_.erase(std::min_element(sources_.begin(), sources_.end(), [](const auto& a, const auto& b) {
    return a.second.full_at() < b.second.full_at();
  }));
}

}  // namespace handoff::control
