#include "actors/room/reasons.hpp"

#include <fmt/format.h>

namespace handoff {

error settled_reason(error reason, const std::string& origin) {
  if (reason.code == errc::ok) reason.code = errc::aborted;
  if (reason.origin.empty()) reason.origin = origin;
  return for_wire(reason);
}

std::string name_of(const peer_view& peer) {
  return fmt::format("engine {} {}", peer.identity.engine, to_string(peer.identity.rank));
}

error timeout(const room_key& key, const std::string& what, duration bound) {
  return {errc::timed_out,
          fmt::format("{}: {} within {:.1f} s", to_string(key), what,
                      std::chrono::duration<double>(bound).count()),
          {}};
}

error draining(const std::string& origin) {
  return {errc::peer_draining, fmt::format("engine {} is draining: it takes no new rooms", origin), origin};
}

}  // namespace handoff
