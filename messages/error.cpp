#include "messages/error.hpp"

#include "messages/limits.hpp"

#include <fmt/format.h>

namespace handoff {
namespace {

struct entry {
  errc code;
  std::string_view name, sentence;
};

constexpr entry table[] = {
    {errc::ok, "ok", "No error."},
    {errc::unknown, "unknown", "A newer peer reported an error that this build does not know."},
    {errc::internal, "internal", "An invariant of handoff was broken; please report this."},
    {errc::invalid_argument, "invalid_argument", "An argument of the call cannot be served."},
    {errc::limit_exceeded, "limit_exceeded", "A configured limit was reached."},
    {errc::closed, "closed", "The runtime is closed or draining."},
    {errc::timed_out, "timed_out", "A bound passed before the awaited answer came."},
    {errc::aborted, "aborted", "An engine aborted the room."},
    {errc::io, "io", "The operating system refused an operation."},
    {errc::config_syntax, "config_syntax", "The configuration cannot be read or is not JSON."},
    {errc::config_key, "config_key", "The configuration has an unknown key or lacks a required one."},
    {errc::config_type, "config_type", "A configuration value has the wrong type."},
    {errc::config_range, "config_range", "A configuration value is out of range."},
    {errc::config_relation, "config_relation", "Configuration values contradict each other."},
    {errc::wire_malformed, "wire_malformed", "Bytes from a peer do not decode."},
    {errc::wire_version, "wire_version", "The two sides speak no common protocol version."},
    {errc::wire_unsupported, "wire_unsupported", "A message or feature is not known to this build."},
    {errc::wire_too_large, "wire_too_large", "A message is larger than the wire limits allow."},
    {errc::peer_unknown, "peer_unknown", "No engine of that name or address is known."},
    {errc::peer_refused, "peer_refused", "The peer refused the connection."},
    {errc::peer_gone, "peer_gone", "The peer died or restarted."},
    {errc::peer_incompatible, "peer_incompatible", "The two engines' models or formats differ."},
    {errc::peer_unauthorized, "peer_unauthorized", "The token is missing or wrong."},
    {errc::peer_draining, "peer_draining", "The peer is draining and takes no new rooms."},
    {errc::layout_refused, "layout_refused", "The two layouts cannot be matched."},
    {errc::transport_provider, "transport_provider", "No usable libfabric provider."},
    {errc::transport_region, "transport_region", "A block lies outside of registered memory."},
    {errc::transport_post, "transport_post", "The provider refused an operation."},
    {errc::transport_completion, "transport_completion", "An operation completed in error."},
    {errc::transport_full, "transport_full", "A bounded queue of the transport is full."},
    {errc::transport_fenced, "transport_fenced", "The owner of the memory fenced this peer."},
    {errc::transport_probe, "transport_probe", "The connection probe failed."},
    {errc::room_duplicate, "room_duplicate", "The room is active already."},
    {errc::room_unknown, "room_unknown", "No such room is known here."},
    {errc::room_superseded, "room_superseded", "A newer attempt took the room over."},
    {errc::room_state, "room_state", "The call does not fit the room's state."},
    {errc::coverage_gap, "coverage_gap", "Not everything that the plan owes has arrived."},
    {errc::plan_mismatch, "plan_mismatch", "The two sides planned different blocks."},
    {errc::metadata_missing, "metadata_missing", "The metadata row does not carry this room's stamp."},
    {errc::metadata_mismatch, "metadata_mismatch", "The metadata row belongs to another room."},
    {errc::pages_conflict, "pages_conflict", "Pages are leased to another room."},
    {errc::injected, "injected", "A failure injected on purpose."},
};

const entry* find(errc code) {
  for (const auto& e : table)
    if (e.code == code) return &e;
  return nullptr;
}

// Cuts before a character, never inside of one.
std::string cut(const std::string& text) {
  auto size = limits::error_detail_bytes;
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

error for_wire(const error& e) {
  return {e.code, cut(e.detail), cut(e.origin)};
}

std::string_view to_string(errc code) {
  const auto* e = find(code);
  return e ? e->name : "unknown";
}

std::string_view describe(errc code) {
  const auto* e = find(code);
  return e ? e->sentence : describe(errc::unknown);
}

errc errc_from_wire(std::uint16_t number) {
  auto code = static_cast<errc>(number);
  return find(code) ? code : errc::unknown;
}

int exit_status(errc code) {
  auto number = static_cast<int>(code);
  if (number == 0) return 0;
  if (number >= 20 && number < 40) return 2;   // configuration
  if (number >= 40 && number < 80) return 3;   // peer: unknown, refused, incompatible, gone
  if (number >= 80 && number < 100) return 4;  // provider
  if (number >= 100) return 5;                 // rooms failed
  return 1;
}

std::string to_string(const error& e) {
  auto text = fmt::format("{}: {}", to_string(e.code), e.detail.empty() ? describe(e.code) : e.detail);
  if (!e.origin.empty()) text += fmt::format(" (seen by {})", e.origin);
  return text;
}

}  // namespace handoff
