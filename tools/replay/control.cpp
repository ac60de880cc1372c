#include "tools/replay/control.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace handoff::replay {

using json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(worker_faults, failure_probability, breakpoint, breakpoint_action)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(worker_bounds, heartbeat_ms, suspect_ms, gone_ms, lease_ms, renew_ms,
                                   connect_ms, offer_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(worker_setup, role, name, model, provider, bootstrap, source, page_tokens,
                                   pages, timeout_s, seed, sabotage, faults, bounds, quiet)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ready_note, endpoint, control_address)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(room_order, room, tokens, source)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(room_outcome, room, failure, reason, started_ns, succeeded_ns, pages,
                                   bytes_verified, wrong_bytes, findings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(resource_counts, descriptors, registrations, peers, actors, maps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(worker_summary, counts, leaks, findings, connections, shm_names,
                                   bytes_written, writes, injected)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(breakpoint_note, where)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(failure_note, code, detail)

expected<control_line> parse_line(std::string_view line) {
  const auto object = json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("kind") || !object["kind"].is_string())
    return fail(errc::wire_malformed, fmt::format("not a line of a replay: {}", line.substr(0, 80)));
  return control_line{object["kind"].get<std::string>(), object.value("body", json::object()).dump()};
}

std::string make_line(std::string_view kind) {
  return json{{"kind", kind}}.dump();
}

template <class T>
std::string make_line(std::string_view kind, const T& body) {
  // Reasons may hold any bytes of an operating system's text; what is no UTF-8 is replaced.
  return json{{"kind", kind}, {"body", body}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class T>
expected<T> body_of(const control_line& line) {
  try {
    return json::parse(line.body).get<T>();
  } catch (const json::exception& e) {
    return fail(errc::wire_malformed, fmt::format("'{}' line of a replay: {}", line.kind, e.what()));
  }
}

#define CARRIES(type)                                            \
  template std::string make_line(std::string_view, const type&); \
  template expected<type> body_of(const control_line&);
CARRIES(worker_setup)
CARRIES(ready_note)
CARRIES(room_order)
CARRIES(room_outcome)
CARRIES(worker_summary)
CARRIES(breakpoint_note)
CARRIES(failure_note)
#undef CARRIES

}  // namespace handoff::replay
