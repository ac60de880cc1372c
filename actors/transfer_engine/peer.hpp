// What the transfer engine keeps per peer session, and per conversation that may become one.
#pragma once

#include "actors/transfer_engine/peer_session_machine.hpp"
#include "messages/compatibility.hpp"
#include "messages/control_messages.hpp"
#include "messages/ids.hpp"
#include "messages/wire.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace handoff {

/// Our side of a connect conversation: resolving -> dialling -> requesting, then a peer_session probes.
struct connect_dialogue {
  enum class phase : std::uint8_t { resolving, dialling, requesting };

  std::string asked;
  phase state = phase::resolving;
  topology_entry entry;
  std::vector<std::string> providers;  ///< still to try, best first
  std::string why;                     ///< how the choice came about so far
  std::uint64_t ticket = 0, connection = 0;
  peer_id peer;  ///< of the endpoint that was opened for it; 0: none
  session_id session;
  time_point deadline;
};

/// One session with one life of a peer; its transport endpoint has the same id.
struct peer_session {
  peer_session(peer_id id, peer_session_machine machine) : id(id), machine(std::move(machine)) {}

  peer_id id;
  peer_session_machine machine;
  std::string asked;            ///< what rooms of ours named; empty when the peer connected to us
  std::string provider, why;    ///< what was picked, and the reason
  std::string control_address;  ///< where the peer listens
  std::shared_ptr<const layout_descriptor> layout;
  std::uint64_t connection = 0, ticket = 0;  ///< its control connection; a reconnect under way
  /// The conversation to take up again when the probe fails: with the providers that are left.
  std::optional<connect_dialogue> fallback;
  bool told = false;  ///< rooms know it
  bool lost = false;  ///< rooms were told that it is gone
  bool mute = false;  ///< a frame was not sent: those behind it would come out of order
  /// Last words of rooms that wait for a control connection; at most `words_max`.
  std::vector<std::shared_ptr<const wire::bytes>> words;
  static constexpr std::size_t words_max = 1024;

  session_id session() const { return machine.session(); }
};

}  // namespace handoff
