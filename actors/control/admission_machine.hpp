// Who may open a control connection, and who must go when others come. Pure: the broker reports what happens
// to accepted connections and does what it is told.
//
//   unauthenticated   accepted; no hello that was let in yet. At most `unauthenticated_max`: one more ends
//   the
//                     oldest, because a peer says hello within a round trip and who holds out does not
//   authenticated     let in; nobody's arrival ends it
//
// Both together are at most `connections_max`, and one source address opens connections at a bounded rate.
#pragma once

#include "actors/control/token_bucket.hpp"
#include "messages/error.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

namespace handoff::control {

struct admission_context {
  std::uint32_t connections_max = 1, unauthenticated_max = 1;
  rate_limit per_source;
  std::size_t sources_max = 1024;  ///< addresses whose rate is remembered
};

class admission_machine {
 public:
  explicit admission_machine(const admission_context& context) : context_(context) {}

  struct verdict {
    error refusal;                         ///< the newcomer is not let in
    std::optional<std::uint64_t> evicted;  ///< ends for it
  };
  verdict arrived(std::uint64_t connection, const std::string& source, time_point now);
  /// Its hello was let in.
  void authenticated(std::uint64_t connection);
  /// For connections of any state, unknown ones too.
  void ended(std::uint64_t connection);

  std::size_t unauthenticated() const { return unauthenticated_.size(); }
  std::size_t connections() const { return unauthenticated_.size() + authenticated_.size(); }
  std::size_t sources() const { return sources_.size(); }

 private:
  bool take(const std::string& source, time_point now);
  void forget_sources(time_point now);

  admission_context context_;
  std::deque<std::uint64_t> unauthenticated_;  ///< oldest first
  std::unordered_set<std::uint64_t> authenticated_;
  std::map<std::string, token_bucket> sources_;  ///< with buckets that may not be full
};

}  // namespace handoff::control
