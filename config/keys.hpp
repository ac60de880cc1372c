// The one declaration of every key of the configuration file. Loader, check, show and the reference table in
// README.md are loops over it.
#pragma once

#include "config/engine_config.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace handoff {

/// How a key's member is reached in any engine_config.
using uint32_member = std::uint32_t& (*)(engine_config&);
using uint64_member = std::uint64_t& (*)(engine_config&);
using bool_member = bool& (*)(engine_config&);
using text_member = std::string& (*)(engine_config&);
using probabilities_member = failure_probabilities& (*)(engine_config&);
using rules_member = std::vector<mismatch_rule>& (*)(engine_config&);

/// What the text of a key must be.
enum class text_form : std::uint8_t {
  any,           ///< UTF-8 without control characters
  host_port,     ///< "host:port", "[::1]:port"
  bind_port,     ///< the same, port 0 lets the kernel choose
  bind_address,  ///< an address of this machine, no wildcard
  host,          ///< a host name or address
  path,          ///< a file's name
  choice,        ///< one of key_spec::choices
};

struct key_spec {
  std::string_view section, name;  ///< "/section/name" in the file
  std::variant<uint32_member, uint64_member, bool_member, text_member, rules_member, probabilities_member>
      member;
  std::string_view unit;  ///< "ms", "bytes", ...; empty for texts
  std::uint64_t min = 0;  ///< numbers: value; texts: bytes
  std::uint64_t max = 0;
  text_form form = text_form::any;
  std::span<const std::string_view> choices;
  std::uint64_t multiple_of = 1;
  std::string_view sentence;
};

/// All keys, in the order of the reference table; keys of one section are neighbours.
std::span<const key_spec> all_keys();

bool is_required(const key_spec& key);
/// "/transport/window"
std::string pointer_of(const key_spec& key);
/// "1..4096", "0..128 bytes", "auto, tcp or shm": what is allowed, for tables and errors.
std::string allowed_values(const key_spec& key);

/// "a, b or c"
std::string any_of_texts(std::span<const std::string_view> texts);

/// "/testing/failure_probability/poll"
std::string pointer_of(const key_spec& key, failure_kind kind);

/// Fields of the compatibility record whose difference may be tolerated.
std::span<const std::string_view> tolerable_fields();

}  // namespace handoff
