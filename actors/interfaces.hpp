// Every conversation between actors of one process: the structs, then the typed interfaces with a line per
// handler. What crosses processes stands in messages/room_messages.hpp (frames) and
// messages/control_messages.hpp.
#pragma once

#include "actors/bootstrap/directory.hpp"
#include "actors/room/rank_calls.hpp"
#include "messages/caf.hpp"
#include "messages/control_messages.hpp"
#include "messages/metadata_row.hpp"
#include "messages/type_ids.hpp"
#include "messages/wire.hpp"
#include "transport/layout/plan.hpp"
#include "transport/transport.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace handoff {

/// Sent once, before any peer exists.
struct rank_actors {
  caf::actor prefill, decode;
};

/// One batch of the transport's engine thread; moved out by its one reader.
struct transport_batch {
  std::shared_ptr<std::vector<transport::event>> events;
};

// -- control broker <-> its users
// ----------------------------------------------------------------------------

/// Connect to host:port and say hello; answered by control_opened or control_closed with the caller's
/// `ticket`.
struct control_dial {
  std::uint64_t ticket = 0;
  std::string address;
  caf::actor owner;
};
/// A received message was looked at: its user let go of the payload.
struct control_processed {
  connection_id connection;
  std::size_t bytes = 0;
};
/// Close every connection and open none any more; answered with true when CAF's I/O loop has let go of the
/// last one.
struct control_end {};
/// Who gets what from connections that others opened; null where this process does not serve it.
struct control_routes {
  caf::actor bootstrap, transfer_engine, drain;
};

// -- transfer engine <-> bootstrap client
// ---------------------------------------------------------------------

/// Find the rank of the source engine at a bootstrap endpoint (host:port) or by name; answered by resolved.
struct resolve_call {
  std::string peer;
  rank_coord rank;
  engine_role role = engine_role::prefill;
  caf::actor asker;
};

/// This rank ends; answered with true when that was said to the registry.
struct leave_call {};

// -- whoever drains the rank -> drain actor
// ------------------------------------------------------------------

/// No new rooms from now on; answered when none is left or `within` has passed.
struct drain_call {
  duration within{};
};
struct drain_outcome {
  std::uint64_t rooms_left = 0;
  error reason;  ///< why rooms are left
};

// -- everyone ----------------------------------------------------------------------------------------------

struct tick {};
struct status_call {};
/// Everyone that the monitor asks; sent again when actors were added.
struct monitored {
  std::vector<std::pair<std::string, caf::actor>> actors;
};
struct status_report {
  std::vector<status_part> parts;
  std::vector<std::string> silent;  ///< actors that missed the deadline
};

// -- the interfaces
// ------------------------------------------------------------------------------------------

/// Source side of one engine rank: sender machines and their leases.
using prefill_interface = typed_interface<void(offer_call),      // engine: these pages will be sent
                                          void(send_call),       // engine: a chunk is computed
                                          void(abort_call),      // engine gives the room up
                                          void(no_new_rooms),    // the rank drains
                                          bool(quiesce_call),    // engine: may I touch the pages?
                                          void(room_frame),      // announce, publish, room_result, abort
                                          void(transfer_ended),  // a submitted transfer is settled
                                          void(peer_up),         // a sink connected
                                          void(peer_down),       // a peer is lost: its rooms fail
                                          void(peer_endpoint_closed),  // nothing of that peer moves any more
                                          void(tick),                  // the earliest deadline is here
                                          status_part(status_call)>;

/// Sink side of one engine rank: receiver machines, their leases and metadata slots.
using decode_interface =
    typed_interface<void(announce_call),         // engine: a request is coming
                    void(publish_call),          // engine: destination pages
                    void(commit_call),           // engine has taken the row
                    void(abort_call),            // engine gives the room up
                    void(no_new_rooms),          // the rank drains
                    bool(quiesce_call),          // engine: may I touch the pages?
                    void(room_frame),            // room_done, abort, drained
                    void(peer_up),               // the source is connected
                    void(connect_failed),        // the source cannot be reached
                    void(peer_down),             // a peer is lost: its rooms fail
                    void(peer_endpoint_closed),  // nothing of that peer can land any more
                    void(tick),                  // the earliest deadline is here
                    status_part(status_call)>;

/// Owns the transport and every peer session.
using transfer_engine_interface = typed_interface<void(rank_actors),       // whom to tell
                                                  void(submit_call),       // post a plan
                                                  void(frame_call),        // send a frame of a room
                                                  void(connect_call),      // find and connect a source engine
                                                  void(fence_call),        // shut a peer out of our memory
                                                  void(no_new_rooms),      // the rank drains
                                                  void(transport_batch),   // from the transport's thread
                                                  void(control_opened),    // a dialled connection is ready
                                                  void(control_received),  // connect conversation
                                                  void(control_closed),    // first sign of a dead peer
                                                  void(resolved),          // where a source engine listens
                                                  void(tick), status_part(status_call)>;

/// The registry of engines.
using bootstrap_interface = typed_interface<void(control_received),  // what ranks say to the registry
                                            void(control_closed),    // a subscriber went away
                                            void(tick), status_part(status_call)>;

/// Our side of the registry: registers this rank, finds others.
using bootstrap_client_interface =
    typed_interface<void(registration), void(resolve_call), void(no_new_rooms), bool(leave_call),
                    void(control_opened), void(control_received), void(control_closed), void(tick),
                    status_part(status_call)>;

/// Drains the rank, for its engine or for a control connection that asks.
using drain_interface =
    typed_interface<drain_outcome(drain_call), void(control_received), void(control_closed)>;

/// Asks every actor for its status, within a deadline.
using monitor_interface = typed_interface<void(monitored), status_report(status_call)>;

}  // namespace handoff
