// Faults on purpose between machines and transport, for showing that oracles see them.
#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <string_view>

namespace handoff {

enum class sabotage_kind : std::uint8_t {
  none,
  flip_byte,       ///< one byte of one block arrives with its neighbour's value
  skip_page,       ///< one block of a plan is not written
  swap_rooms,      ///< two rooms' blocks land in each other's pages
  stale_page,      ///< as skip_page, at a sink that leaves the previous owner's bytes in its pages
  leak_lease,      ///< the engine never gives one room's slot and pages back; the transport is left alone
  drop_room_done,  ///< everything is written, the notice of it is lost
};
inline constexpr sabotage_kind last_enumerator(sabotage_kind) {
  return sabotage_kind::drop_room_done;
}

/// "flip-byte": as on the command line.
std::string_view to_string(sabotage_kind kind);
/// An unknown name is answered with the known ones (invalid_argument).
expected<sabotage_kind> parse_sabotage_kind(std::string_view name);

}  // namespace handoff
