#include "actors/runtime/breakpoint.hpp"

#include "actors/decode/receiver_machine.hpp"
#include "actors/prefill/sender_machine.hpp"

#include <charconv>
#include <csignal>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace handoff {
namespace {

template <class State>
void list_states(std::string_view machine, std::size_t count, std::vector<std::string>& names) {
  for (std::size_t i = 0; i < count; ++i)
    names.push_back(fmt::format("{}.{}", machine, to_string(static_cast<State>(i))));
}

const std::vector<std::string>& all_states() {
  static const auto names = [] {
    std::vector<std::string> all;
    list_states<sender_state>("sender", sender_state_count, all);
    list_states<receiver_state>("receiver", receiver_state_count, all);
    list_states<peer_session_state>("peer", peer_session_state_count, all);
    return all;
  }();
  return names;
}

/// The whole process, in whatever it is doing: that is the point.
void act(const std::string& action) {
  if (action == "stop") kill(getpid(), SIGSTOP);
  if (action == "kill") kill(getpid(), SIGKILL);
}

/// Met at most once; belongs to the machines of one actor.
class trap {
 public:
  trap(breakpoint where, std::string action, logger log)
      : where_(std::move(where)), action_(std::move(action)), log_(std::move(log)) {}

  void entered(std::optional<room_id> room, std::string_view subject, std::string_view state) {
    if (met_ || state != where_.state || (where_.room && where_.room != room)) return;
    met_ = true;
    log_.warn("breakpoint", "{}.{} {}: {}", where_.machine, where_.state, subject, action_);
    act(action_);
  }

 private:
  breakpoint where_;
  std::string action_;
  logger log_;
  bool met_ = false;
};

std::shared_ptr<trap> trap_for(const testing_section& testing, std::string_view machine, const logger& log) {
  if (!testing.enabled || testing.breakpoint.empty()) return nullptr;
  auto where = parse_breakpoint(testing.breakpoint);
  if (!where || where->machine != machine) return nullptr;
  return std::make_shared<trap>(*where, testing.breakpoint_action, log);
}

}  // namespace

expected<breakpoint> parse_breakpoint(const std::string& text) {
  auto colon = text.find(':');
  auto name = text.substr(0, colon);
  breakpoint result;
  for (const auto& known : all_states()) {
    if (known != name) continue;
    auto dot = name.find('.');
    result.machine = name.substr(0, dot);
    result.state = name.substr(dot + 1);
  }
  auto refuse = [&](std::string_view why) {
    return fail(errc::config_range, fmt::format("/testing/breakpoint: \"{}\" {}", text, why));
  };
  if (result.machine.empty())
    return refuse(fmt::format("names no state; the states are {}", fmt::join(all_states(), ", ")));
  if (colon == text.npos) return result;
  std::uint64_t room = 0;
  const auto* end = text.data() + text.size();
  auto [rest, problem] = std::from_chars(text.data() + colon + 1, end, room);
  if (problem != std::errc{} || rest != end) return refuse("names no room behind the colon");
  if (result.machine == "peer") return refuse("names a room, but a peer's session serves many");
  result.room = room_id{room};
  return result;
}

transition_log break_in(const testing_section& testing, std::string_view machine, const logger& log,
                        transition_log next) {
  auto set = trap_for(testing, machine, log);
  if (!set) return next;
  return [set, next = std::move(next)](const room_key& key, std::string_view from, std::string_view to,
                                       time_point now) {
    if (next) next(key, from, to, now);
    set->entered(key.room, to_string(key), to);
  };
}

peer_transition_log break_in_peer(const testing_section& testing, const logger& log) {
  auto set = trap_for(testing, "peer", log);
  if (!set) return {};
  return [set](const engine_identity& peer, std::string_view, std::string_view to) {
    set->entered({}, peer.engine, to);
  };
}

}  // namespace handoff
