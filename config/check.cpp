// Ranges of single values, then relations between them.
#include "config/check.hpp"

#include "config/host_port.hpp"
#include "config/json_reader.hpp"
#include "config/keys.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

std::string quote(const std::string& text) {
  json_value value;
  value.kind = json_kind::text;
  value.text = text;
  return display(value);
}

void check_number(const key_spec& key, std::uint64_t value, problems& found) {
  if (value < key.min || value > key.max || value % key.multiple_of != 0)
    found.add(errc::config_range, pointer_of(key), range_text(key, std::to_string(value)));
}

/// Why the text does not have the form of its key; empty if it has.
std::string form_problem(const key_spec& key, const std::string& text) {
  auto expected_text = fmt::format("expected {}", allowed_values(key));
  switch (key.form) {
    case text_form::any:
    case text_form::path: {
      auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
      return std::any_of(text.begin(), text.end(), is_control) ? "expected no control characters" : "";
    }
    case text_form::host_port: {
      auto address = parse_host_port(text);
      if (!address) return fmt::format("{}; {}", expected_text, address.error().detail);
      return address->port == 0 || is_wildcard(address->host) ? expected_text : "";
    }
    case text_form::bind_port: {
      auto address = parse_host_port(text);
      return address ? "" : fmt::format("{}; {}", expected_text, address.error().detail);
    }
    case text_form::bind_address:
      return is_address(text) && !is_wildcard(text) ? "" : expected_text;
    case text_form::host:
      if (is_wildcard(text)) return fmt::format("{} that peers can connect to, no wildcard", expected_text);
      return text.empty() || is_host(text) ? "" : expected_text;
    case text_form::choice:
      return std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end() ? ""
                                                                                          : expected_text;
  }
  return "";
}

void check_text(const key_spec& key, const std::string& text, problems& found) {
  if (text.size() < key.min || text.size() > key.max) {
    auto value = fmt::format("{} ({} bytes)", quote(text), text.size());
    found.add(errc::config_range, pointer_of(key), range_text(key, value));
    return;
  }
  auto why = form_problem(key, text);
  if (!why.empty())
    found.add(errc::config_range, pointer_of(key), fmt::format("{} is not allowed: {}", quote(text), why));
}

void check_rules(const key_spec& key, const std::vector<mismatch_rule>& rules, problems& found) {
  auto fields = tolerable_fields();
  for (const auto& rule : rules) {
    if (std::find(fields.begin(), fields.end(), rule.field) != fields.end()) continue;
    auto near = closest(rule.field, {fields.begin(), fields.end()});
    auto hint = near.empty() ? "" : fmt::format("; did you mean {}?", near);
    found.add(
        errc::config_key, child_pointer(pointer_of(key), rule.field),
        fmt::format("no field whose difference can be tolerated; expected {}{}", any_of_texts(fields), hint));
  }
}

void check_probabilities(const key_spec& key, const failure_probabilities& values, problems& found) {
  for (std::size_t i = 0; i < failure_kind_count; ++i)
    if (!(values[i] >= 0 && values[i] <= 1))
      found.add(errc::config_range, pointer_of(key, static_cast<failure_kind>(i)),
                fmt::format("{} is out of range: expected 0..1", values[i]));
}

/// One line of the relations: `left` must be greater (or not less) than `right`.
struct relation {
  std::string_view left;
  std::uint64_t left_value;
  std::string_view right;
  std::uint64_t right_value;
  bool may_be_equal;
  std::string_view why;
};

std::vector<relation> relations_of(const engine_config& c) {
  const auto& t = c.timeouts;
  const auto& n = c.transport;
  auto room_bounds =
      std::uint64_t{t.room_bootstrap_ms} + t.room_waiting_ms + t.room_transferring_ms + t.room_result_ms;
  constexpr bool greater = false, not_less = true;
  return {
      {"/transport/suspect_after_ms", n.suspect_after_ms, "/transport/heartbeat_interval_ms",
       n.heartbeat_interval_ms, greater, "a healthy idle peer is heard once per beat only"},
      {"/transport/gone_after_ms", n.gone_after_ms, "/transport/suspect_after_ms", n.suspect_after_ms,
       greater, "a peer is suspect before it is gone"},
      {"/timeouts/bootstrap_lease_ms", t.bootstrap_lease_ms, "/timeouts/bootstrap_renew_ms",
       t.bootstrap_renew_ms, greater, "a lease must be renewed before it ends"},
      {"/timeouts/room_transferring_ms", t.room_transferring_ms, "/timeouts/transfer_ms", t.transfer_ms,
       not_less, "a room must outlive each of its transfers"},
      {"/timeouts/connect_ms", t.connect_ms, "/timeouts/probe_ms", t.probe_ms, not_less,
       "the probe is a part of connecting"},
      {"/timeouts/tombstone_ms", t.tombstone_ms, "the sum of the four /timeouts/room_*_ms", room_bounds,
       not_less, "late messages may come while the other side still has the room"},
      {"/limits/rooms", c.limits.rooms, "/memory/slots", c.memory.slots, not_less,
       "a slot belongs to an active room"},
      {"/limits/events", c.limits.events, "4 x /limits/rooms",
       std::uint64_t{c.limits.rooms} * defaults::events_per_room, not_less,
       "each room may leave that many events unread, and none may be lost"},
      {"/limits/control_connections", c.limits.control_connections, "/limits/control_unauthenticated",
       c.limits.control_unauthenticated, greater, "a flood must leave room for peers that are known"},
  };
}

/// Only loopback is open to everybody who can reach it.
void check_admission(const engine_config& c, problems& found) {
  const auto& s = c.security;
  auto host_of = [](const std::string& where) { return parse_host_port(where)->host; };
  const struct {
    std::string_view pointer;
    const std::string& text;
    std::string host;
  } binds[] = {{"/bootstrap/bind", c.bootstrap.bind, host_of(c.bootstrap.bind)},
               {"/control/bind", c.control.bind, host_of(c.control.bind)},
               {"/transport/bind", c.transport.bind, c.transport.bind}};
  for (const auto& bind : binds) {
    if (is_loopback(bind.host)) continue;
    auto pointer = std::string(bind.pointer);
    if (s.token_file.empty() && !s.allow_unauthenticated)
      found.add(
          errc::config_relation, pointer,
          fmt::format("{} contradicts /security/token_file (\"\"): only loopback addresses (127.0.0.0/8 "
                      "or ::1) need no token, because whoever reaches another one could write into KV "
                      "memory; name a token file, or say /security/allow_unauthenticated: true",
                      quote(bind.text)));
    if (is_wildcard(bind.host) && c.control.advertise.empty())
      found.add(errc::config_relation, pointer,
                fmt::format("{} contradicts /control/advertise (\"\"): peers cannot connect to a wildcard; "
                            "name the host that they connect to",
                            quote(bind.text)));
  }
  if (!s.token_file.empty() && s.allow_unauthenticated)
    found.add(errc::config_relation, "/security/allow_unauthenticated",
              fmt::format("true contradicts /security/token_file ({}): with a token nobody is let in without "
                          "it; drop one of the two",
                          quote(s.token_file)));
}

/// Failures on purpose need two steps, so that no single slip of a pen brings them into service.
void check_testing(const testing_section& t, problems& found) {
  if (t.enabled) return;
  constexpr std::string_view why = "contradicts /testing/enabled (false): failures on purpose are for tests";
  for (std::size_t i = 0; i < failure_kind_count; ++i)
    if (t.failure_probability[i] > 0)
      found.add(errc::config_relation, fmt::format("/testing/failure_probability/{}", failure_kind_names[i]),
                fmt::format("{} {}", t.failure_probability[i], why));
  if (!t.breakpoint.empty())
    found.add(errc::config_relation, "/testing/breakpoint", fmt::format("{} {}", quote(t.breakpoint), why));
}

}  // namespace

std::string range_text(const key_spec& key, std::string_view value) {
  return fmt::format("{} is out of range: expected {}{}{}", value, allowed_values(key),
                     key.unit.empty() ? "" : " ", key.unit);
}

void check_values(engine_config& config, problems& found) {
  for (const auto& key : all_keys()) {
    if (found.has(pointer_of(key))) continue;
    if (const auto* m32 = std::get_if<uint32_member>(&key.member))
      check_number(key, (*m32)(config), found);
    else if (const auto* m64 = std::get_if<uint64_member>(&key.member))
      check_number(key, (*m64)(config), found);
    else if (const auto* text = std::get_if<text_member>(&key.member))
      check_text(key, (*text)(config), found);
    else if (const auto* rules = std::get_if<rules_member>(&key.member))
      check_rules(key, (*rules)(config), found);
    else if (const auto* probabilities = std::get_if<probabilities_member>(&key.member))
      check_probabilities(key, (*probabilities)(config), found);
  }
}

void check_relations(const engine_config& config, problems& found) {
  for (const auto& r : relations_of(config)) {
    if (r.left_value > r.right_value || (r.may_be_equal && r.left_value == r.right_value)) continue;
    found.add(errc::config_relation, std::string(r.left),
              fmt::format("{} contradicts {} ({}): it must be {}; {}", r.left_value, r.right, r.right_value,
                          r.may_be_equal ? "at least that" : "greater", r.why));
  }
  check_admission(config, found);
  check_testing(config.testing, found);
}

expected<void> check_config(const engine_config& config, const std::string& origin) {
  problems found;
  auto copy = config;  // keys reach members of a mutable configuration only
  check_values(copy, found);
  if (found.empty()) check_relations(config, found);
  return found.result(origin);
}

}  // namespace handoff
