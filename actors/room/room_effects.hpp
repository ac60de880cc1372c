// What the sender and receiver machines of one room see of the world, and what they ask of their actor. Pure
// data: no CAF, clock, thread or I/O.
#pragma once

#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"
#include "messages/metadata_row.hpp"
#include "messages/room_messages.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace handoff {

using time_point = transport::time_point;
using duration = transport::duration;

/// A connected peer as a room sees it; dies with its session.
struct peer_view {
  peer_id peer;
  session_id session;
  engine_identity identity;
  std::shared_ptr<const layout_descriptor> layout;  ///< the peer's
  region_id metadata_region;                        ///< the peer's region that holds its metadata rows
};

using room_message = std::variant<announce_message, publish_message, room_result_message, room_done_message,
                                  progress_message, abort_message, drained_message>;

enum class lease_state : std::uint8_t { reserved, exposed, quarantined, released };
std::string_view to_string(lease_state state);

// -- effects, in the order in which the actor must carry them out -------------------------------------------

struct send_effect {
  peer_id peer;
  room_message message;
};
/// Fill the source's private metadata slot; comes before the transfer that reads it.
struct write_row_effect {
  slot_id slot;
  metadata_row row;
  room_key stamp;
};
/// A transport that refuses it is answered by `transfer_done` with its error and
/// `drained`.
struct submit_effect {
  transport::transfer what;
};
struct verdict_effect {
  kv_poll poll = kv_poll::bootstrapping;
  error reason;
  proven_by_component proven_tokens{};  ///< of a sink
};
/// What became of the room's lease. `released` comes exactly once and is the last word of a room that an
/// engine knows, also where no page was leased yet; the actor reports it as the room's `released`.
struct lease_effect {
  lease_state state = lease_state::reserved;
};
/// The memory's owner must shut out this peer; answered by `peer_closed`.
struct fence_effect {
  peer_id peer;
};
/// The slot may be used again.
struct free_slot_effect {
  slot_id slot;
};

using room_effect = std::variant<send_effect, write_row_effect, submit_effect, verdict_effect, lease_effect,
                                 fence_effect, free_slot_effect>;
using room_effects = std::vector<room_effect>;

/// Who a room is waiting for, for what, since when: the answer to "why does this not end".
struct waiting_on {
  std::string who, what;
  time_point since;
};

}  // namespace handoff
