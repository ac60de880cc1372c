// State x event tables. Every cell is run: no combination is impossible for a machine that is fed by peers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace handoff::testing {

/// By event: state -> what happens there, as text. States that are not named: nothing at all.
using table = std::map<std::string, std::map<std::string, std::string>>;

/// `act(state, event)` brings a fresh machine into the state, applies the event and tells what happened.
inline void check_table(const std::vector<std::string>& states, const std::vector<std::string>& events,
                        const table& expected,
                        const std::function<std::string(std::size_t, std::size_t)>& act) {
  std::size_t changed = 0, named = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    auto row = expected.find(events[e]);
    for (std::size_t s = 0; s < states.size(); ++s) {
      std::string cell;
      if (row != expected.end()) {
        auto at = row->second.find(states[s]);
        if (at != row->second.end()) cell = at->second, ++named;
      }
      INFO(events[e], " in ", states[s]);
      CHECK(act(s, e) == cell);
      changed += !cell.empty();
    }
  }
  std::size_t written = 0;
  for (const auto& [event, cells] : expected) written += cells.size();
  CHECK_MESSAGE(written == named, "the table names a state or an event that does not exist");
  MESSAGE(states.size(), " states x ", events.size(), " events: ", states.size() * events.size(),
          " cells hit, in ", changed, " something happens");
}

}  // namespace handoff::testing
