// One session with one incarnation of a peer: is it there, may rooms use it, is it dead. Pure: the transfer
// engine feeds events and carries out effects in order.
//
//   connecting  the handshake and the transport's probe are under way; bounded
//   ready       rooms may use the peer
//   suspect     silent, or its control connection ended, or the fabric failed: rooms wait, bounded
//   gone        over: rooms were told, the endpoint here is being fenced
//
// A silent peer that is heard again is ready again. An ended control connection is tried again: refused or
// another incarnation means gone, the same incarnation means ready again. After a fabric failure the control
// connection is probed too, to find the reason and, if the peer is alive, for the last words of its rooms:
// the endpoint is broken, and a new session (number + 1, a machine of its own) is made by whoever needs the
// peer next.
#pragma once

#include "actors/room/room_effects.hpp"
#include "actors/room/state_clock.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace handoff {

enum class peer_session_state : std::uint8_t { connecting, ready, suspect, gone };
inline constexpr std::size_t peer_session_state_count = 4;
std::string_view to_string(peer_session_state state);

/// Called when a session enters a state; `from` is empty for a new one.
using peer_transition_log =
    std::function<void(const engine_identity& peer, std::string_view from, std::string_view to)>;

struct peer_session_context {
  duration connect_timeout = std::chrono::seconds(5);          ///< handshake and probe
  duration silent_to_gone = std::chrono::milliseconds(1000);   ///< gone_after - suspect_after
  duration suspect_timeout = std::chrono::milliseconds(1000);  ///< control lost or fabric failed, until gone
  duration reconnect_delay = std::chrono::milliseconds(250);
  std::uint32_t reconnects_max = 4;
  /// After a fabric failure, with the peer alive: how long rooms hear and say over the control connection how
  /// they end.
  duration last_words = std::chrono::milliseconds(50);
  event_log events{};
  peer_transition_log log{};
};

// -- effects, in the order in which they must be carried out ---------------------------------------

struct peer_ready_effect {};
/// Every room that uses this peer must hear of it.
struct rooms_lost_effect {
  error reason;
};
/// Fence the endpoint for this peer; answered by `closed`.
struct fence_peer_effect {};
/// Connect to the peer's control address anew and say hello; answered by `control_reconnected`,
/// `control_refused`, or `control_lost` when nothing answered.
struct reconnect_control_effect {
  std::uint32_t number = 0;  ///< from 1
};
using peer_session_effect =
    std::variant<peer_ready_effect, rooms_lost_effect, fence_peer_effect, reconnect_control_effect>;
using peer_session_effects = std::vector<peer_session_effect>;

class peer_session_machine {
 public:
  struct transition {
    peer_session_state from, to;
    time_point when;
    std::string why;
  };
  static constexpr std::size_t log_length = 16;

  peer_session_machine(engine_identity peer, session_id session, const peer_session_context& context,
                       time_point now);

  // events of the transport
  void connected(time_point now, peer_session_effects& out);
  /// A refused handshake, a failed probe, a broken endpoint.
  void failed(const error& reason, time_point now, peer_session_effects& out);
  void silent(time_point now, peer_session_effects& out);
  void heard(time_point now, peer_session_effects& out);
  /// The endpoint here is closed: nothing of this peer can land or be read any more.
  void closed(time_point now, peer_session_effects& out);

  // events of the control connection
  void control_lost(time_point now, peer_session_effects& out);
  void control_reconnected(incarnation_id incarnation, time_point now, peer_session_effects& out);
  void control_refused(const error& reason, time_point now, peer_session_effects& out);

  void tick(time_point now, peer_session_effects& out);

  const engine_identity& peer() const { return peer_; }
  session_id session() const { return session_; }
  peer_session_state state() const { return state_; }
  /// Why it is gone or suspect.
  const error& reason() const { return reason_; }
  /// The fabric has failed: this session will be lost, soon.
  bool broken() const { return (doubts_ & fabric) != 0; }
  bool finished() const { return state_ == peer_session_state::gone && closed_; }
  /// When `tick` must be called next; max() if never.
  time_point deadline() const;
  waiting_on waits() const;
  duration time_in(peer_session_state state, time_point now) const;
  /// The last transitions, oldest first.
  const std::deque<transition>& log() const { return log_; }

 private:
  void note(std::string_view event) const {
    if (context_->events) context_->events(to_string(state()), event);
  }
  enum doubt : std::uint8_t { none = 0, silence = 1, no_control = 2, fabric = 4 };

  void move(peer_session_state to, std::string why, time_point now);
  void suspect(doubt cause, error reason, time_point now, peer_session_effects& out);
  void clear(doubt cause, time_point now, peer_session_effects& out);
  void lose(error reason, time_point now, peer_session_effects& out);
  void reconnect(time_point now, peer_session_effects& out);
  error gone(std::string detail) const;
  std::string name() const;

  engine_identity peer_;
  session_id session_;
  const peer_session_context* context_;
  peer_session_state state_ = peer_session_state::connecting;
  std::uint8_t doubts_ = none;  ///< why it is suspect
  bool closed_ = false;
  error reason_;
  time_point entered_, silence_deadline_, doubt_deadline_;
  std::optional<time_point> last_words_until_;
  std::optional<time_point> next_reconnect_;  ///< unset: one is under way, or none is needed
  std::uint32_t reconnects_ = 0;
  std::array<duration, peer_session_state_count> spent_{};
  std::deque<transition> log_;
};

}  // namespace handoff
