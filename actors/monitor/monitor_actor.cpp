#include "actors/monitor/monitor_actor.hpp"

#include <algorithm>

namespace handoff {
namespace {

/// One question to everybody.
struct inquiry {
  status_report report;
  std::size_t awaited = 0;
  caf::typed_response_promise<status_report> answer;

  void settled() {
    if (--awaited == 0) answer.deliver(std::move(report));
  }
};

struct monitor_state {
  monitored all;
};

caf::result<status_report> ask_everybody(monitor_interface::pointer self, const monitored& all,
                                         duration deadline) {
  auto asked = std::make_shared<inquiry>();
  asked->answer = self->make_response_promise<status_report>();
  asked->awaited = all.actors.size() + 1;
  for (const auto& [name, actor] : all.actors)
    ask(self, actor, deadline, status_call{})
        .then(
            [asked](status_part& part) {
              asked->report.parts.push_back(std::move(part));
              asked->settled();
            },
            [asked, name = name](const caf::error&) {
              asked->report.silent.push_back(name);
              asked->settled();
            });
  auto answer = asked->answer;
  asked->settled();
  return answer;
}

}  // namespace

monitor_interface spawn_monitor(caf::actor_system& system, duration deadline) {
  return system.spawn([deadline](monitor_interface::pointer self) -> monitor_interface::behavior_type {
    auto state = std::make_shared<monitor_state>();
    return {
        [state](const monitored& m) { state->all = m; },
        [state, self, deadline](const status_call&) { return ask_everybody(self, state->all, deadline); },
    };
  });
}

}  // namespace handoff
