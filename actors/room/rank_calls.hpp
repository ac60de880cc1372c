// What the parts of one engine rank say to each other, in whatever way it is carried: as actor messages, or
// as plain calls in the simulator. Pure data.
#pragma once

#include "actors/room/room_effects.hpp"
#include "messages/control_messages.hpp"
#include "messages/metadata_row.hpp"
#include "messages/wire.hpp"
#include "transport/layout/plan.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace handoff {

// -- engine -> prefill, decode -----------------------------------------------------------------------------

struct offer_call {
  room_id room;
  std::vector<component_pages> pages;
  std::uint64_t tokens = 0;
  duration lease{};
  std::string label;
};
struct send_call {
  room_id room;
  layout::range what;
  bool last = false;
  std::optional<metadata_row> row;
};
struct announce_call {
  room_id room;
  std::string peer;  ///< bootstrap endpoint (host:port), or an engine's name at our own bootstrap
  std::string label;
};
struct publish_call {
  room_id room;
  std::vector<component_pages> pages;
  std::uint64_t tokens = 0;
};
/// The engine has copied the row out of this slot.
struct commit_call {
  room_key key;
  slot_id slot;
};
struct abort_call {
  room_id room;
  error reason;
};
/// Answered with true when no byte of the room (or, with `all`, of any) is read or written here any more; the
/// asker bounds the wait.
struct quiesce_call {
  room_id room;
  bool all = false;
};

/// The rank drains: everybody of it refuses what would begin a room, and open rooms go on. For good.
struct no_new_rooms {};

// -- prefill, decode <-> transfer engine
// ---------------------------------------------------------------------

struct submit_call {
  transport::transfer what;
};
struct frame_call {
  peer_id peer;
  room_message message;
};
/// Connect to the source engine found at this bootstrap endpoint or under this name. Answered by peer_up or
/// connect_failed.
struct connect_call {
  std::string peer;
};
struct fence_call {
  peer_id peer;
};
struct peer_up {
  peer_view view;
  std::string asked;  ///< as in connect_call; empty when the peer connected to us
};
struct connect_failed {
  std::string asked;
  error reason;
};
struct peer_down {
  peer_id peer;
  error reason;
};
/// The endpoint and its registrations are gone: no byte moves between this peer and us any more.
struct peer_endpoint_closed {
  peer_id peer;
};
struct room_frame {
  peer_view from;
  room_message message;
};
struct transfer_ended {
  transport::transfer_done done;
};

/// Whatever the transfer engine tells the rooms of one side.
using rank_event =
    std::variant<peer_up, connect_failed, peer_down, peer_endpoint_closed, room_frame, transfer_ended>;

/// What the rooms of one side ask of the transfer engine. Answers come later, never from inside a call.
class fabric_port {
 public:
  virtual ~fabric_port() = default;
  virtual void submit(submit_call call) = 0;
  virtual void send(frame_call call) = 0;
  virtual void connect(connect_call call) = 0;
  virtual void fence(fence_call call) = 0;
};

// -- control connections <-> their users
// ----------------------------------------------------------------------------

/// Names one control connection inside a process; never reused.
using connection_id = strong_id<struct connection_tag, std::uint64_t>;

struct control_send {
  connection_id connection;
  std::shared_ptr<const wire::bytes> message;
};
struct control_close {
  connection_id connection;
};
struct control_opened {
  std::uint64_t ticket = 0;
  connection_id connection;
  engine_identity peer;
};
struct control_received {
  connection_id connection;
  engine_identity peer;
  wire::header header;
  std::shared_ptr<const wire::bytes> payload;
};
struct control_closed {
  std::uint64_t ticket = 0;  ///< of a dial that failed, else 0
  connection_id connection;
  error reason;
};

/// Opens and uses control connections. Answers come later, never from inside a call.
class control_port {
 public:
  virtual ~control_port() = default;
  /// Connect to host:port and say hello; answered by control_opened or control_closed with the ticket.
  virtual void dial(std::uint64_t ticket, const std::string& address) = 0;
  virtual void send(control_send call) = 0;
  virtual void close(control_close call) = 0;
};

// -- directory -> peer desk
// ----------------------------------------------------------------------------

struct resolved {
  std::string peer;
  topology_entry entry;
  error reason;
};

// -- everyone ----------------------------------------------------------------------------------------------

/// Names and counts of one actor.
struct status_part {
  std::string actor;
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  std::vector<std::string> lines;
};

}  // namespace handoff
