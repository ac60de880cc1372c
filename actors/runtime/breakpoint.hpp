// The breakpoint of testing.breakpoint: a process stops itself when one of its machines enters a named state.
#pragma once

#include "actors/log/logger.hpp"
#include "actors/room/state_clock.hpp"
#include "actors/transfer_engine/peer_session_machine.hpp"
#include "config/testing.hpp"
#include "messages/error.hpp"

#include <optional>
#include <string>

namespace handoff {

/// "<machine>.<state>[:room]"; machines are sender, receiver and peer, states those of their headers.
struct breakpoint {
  std::string machine, state;
  std::optional<room_id> room;
};
/// config_range names what is wrong and the states that there are.
expected<breakpoint> parse_breakpoint(const std::string& text);

/// Logs of one rank's machines that go to `next` (may be empty) and obey the breakpoint, which is met once: a
/// line "breakpoint" in the log, then SIGSTOP or SIGKILL to this process, before the effects of the entry are
/// carried out. Without a breakpoint for that machine they are `next` itself.
transition_log break_in(const testing_section& testing, std::string_view machine, const logger& log,
                        transition_log next);
peer_transition_log break_in_peer(const testing_section& testing, const logger& log);

}  // namespace handoff
