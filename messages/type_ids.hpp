// The one block of CAF type ids: every struct that actors of one process send to each other, grouped by who
// talks to whom. They never leave the process through CAF (messages/wire.hpp is for that), so CAF needs no
// serialisation.
#pragma once

#include <caf/all.hpp>

#define HANDOFF_LOCAL_MESSAGES(apply)                                                                     \
  /* engine -> prefill, decode */                                                                         \
  apply(offer_call) apply(send_call) apply(announce_call) apply(publish_call) apply(commit_call)          \
      apply(abort_call) apply(quiesce_call) apply(no_new_rooms) apply(leave_call) apply(drain_call)       \
          apply(drain_outcome) /* prefill, decode -> transfer engine */                                   \
      apply(submit_call) apply(frame_call) apply(connect_call)                                            \
          apply(fence_call) /* transfer engine -> prefill, decode */                                      \
      apply(peer_up) apply(peer_down) apply(peer_endpoint_closed) apply(connect_failed) apply(room_frame) \
          apply(transfer_ended) apply(rank_actors) /* transport -> transfer engine */                     \
      apply(transport_batch)                       /* control broker <-> its users */                     \
      apply(control_dial) apply(control_send) apply(control_close) apply(control_opened)                  \
          apply(control_received) apply(control_processed) apply(control_closed) apply(control_routes)    \
              apply(control_end)                              /* transfer engine <-> bootstrap client */  \
      apply(resolve_call) apply(resolved) apply(registration) /* everyone */                              \
      apply(tick) apply(status_call) apply(status_part) apply(status_report) apply(monitored)

namespace handoff {
#define HANDOFF_DECLARE(name) struct name;
HANDOFF_LOCAL_MESSAGES(HANDOFF_DECLARE)
#undef HANDOFF_DECLARE
}  // namespace handoff

CAF_BEGIN_TYPE_ID_BLOCK(handoff, caf::first_custom_type_id)
#define HANDOFF_ADD_TYPE_ID(name) CAF_ADD_TYPE_ID(handoff, (handoff::name))
HANDOFF_LOCAL_MESSAGES(HANDOFF_ADD_TYPE_ID)
#undef HANDOFF_ADD_TYPE_ID
CAF_END_TYPE_ID_BLOCK(handoff)

#define HANDOFF_ALLOW_LOCAL(name) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(handoff::name)
HANDOFF_LOCAL_MESSAGES(HANDOFF_ALLOW_LOCAL)
#undef HANDOFF_ALLOW_LOCAL
