// What a decoded struct is held against beyond the codec's general limits; each text begins with the field.
#include "messages/control_messages.hpp"
#include "messages/limits.hpp"
#include "messages/room_messages.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace handoff {
namespace {

error at_most(const char* field, std::size_t value, std::size_t limit, std::string_view unit) {
  if (value <= limit) return {};
  return {
      errc::wire_too_large, fmt::format("{}: {} {} exceed the limit of {}", field, value, unit, limit), {}};
}

error first_of(std::initializer_list<error> errors) {
  auto found = std::find_if(errors.begin(), errors.end(), [](const error& e) { return bool(e); });
  return found == errors.end() ? error{} : *found;
}

error malformed(std::string detail) {
  return {errc::wire_malformed, std::move(detail), {}};
}

}  // namespace

error check_limits(const error& x) {
  return first_of({at_most("detail", x.detail.size(), limits::error_detail_bytes, "bytes"),
                   at_most("origin", x.origin.size(), limits::error_detail_bytes, "bytes")});
}

error check_limits(const rank_topology& x) {
  if (x.dp && x.pp && x.cp && x.tp) return {};
  return malformed(
      fmt::format("dp{} pp{} cp{} tp{}: every axis has at least one rank", x.dp, x.pp, x.cp, x.tp));
}

error check_limits(const layout_descriptor& x) {
  return first_of({at_most("components", x.components.size(), limits::layout_components, "components"),
                   at_most("buffers", x.buffers.size(), limits::layout_buffers, "buffers"),
                   at_most("states", x.states.size(), limits::layout_components, "state components")});
}

error check_limits(const announce_message& x) {
  if (x.sink_ranks == 0) return malformed("sink_ranks: 0, at least one rank publishes");
  return at_most("label", x.label.size(), limits::label_bytes, "bytes");
}

error check_limits(const publish_message& x) {
  if (x.part >= x.parts) return malformed(fmt::format("part: {} of {}, the first is 0", x.part, x.parts));
  std::size_t runs = 0;
  for (const auto& p : x.pages) runs += p.runs.size();
  return first_of({at_most("parts", x.parts, limits::publish_parts, "parts"),
                   at_most("pages", x.pages.size(), limits::layout_components, "components"),
                   at_most("pages", runs, limits::publish_runs_per_part, "runs")});
}

error check_limits(const room_done_message& x) {
  return at_most("coverage", x.coverage.size(), limits::layout_components, "components");
}

error check_limits(const progress_message& x) {
  return at_most("delivered", x.delivered.size(), limits::layout_components, "components");
}

error check_limits(const hello_message& x) {
  if (x.protocol_min > x.protocol_max)
    return malformed(
        fmt::format("protocol_min: {} is above protocol_max, {}", x.protocol_min, x.protocol_max));
  return at_most("self.engine", x.self.engine.size(), limits::engine_name_bytes, "bytes");
}

error check_limits(const drain_request_message& x) {
  return at_most("deadline_ms", x.deadline_ms, limits::drain_deadline_ms, "ms");
}

error check_limits(const endpoint_record& x) {
  return at_most("regions", x.regions.size(), limits::layout_buffers, "regions");
}

}  // namespace handoff
