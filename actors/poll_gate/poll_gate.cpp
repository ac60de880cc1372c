#include "actors/poll_gate/poll_gate.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {

poll_gate::poll_gate(std::uint32_t ranks, std::size_t rooms_max)
    : ranks_(std::max<std::uint32_t>(ranks, 1)), rooms_max_(rooms_max) {}

expected<std::optional<gate_verdict>> poll_gate::vote(const gate_vote& v) {
  if (v.rank >= ranks_)
    return fail(errc::invalid_argument,
                fmt::format("{}: rank {} voted in a group of {}", to_string(v.key), v.rank, ranks_));
  auto found = rooms_.find(v.key);
  if (found == rooms_.end()) {
    if (rooms_.size() >= rooms_max_)
      return fail(errc::limit_exceeded,
                  fmt::format("{}: {} rooms are in the poll gate already", to_string(v.key), rooms_max_));
    ballot fresh;
    fresh.polls.assign(ranks_, kv_poll::bootstrapping);
    fresh.proven.assign(ranks_, {});
    found = rooms_.emplace(v.key, std::move(fresh)).first;
  }
  auto& room = found->second;
  if (is_terminal(room.verdict)) return std::nullopt;
  auto& poll = room.polls[v.rank];
  if (v.poll != kv_poll::failed && v.poll < poll) return std::nullopt;
  poll = v.poll;
  room.proven[v.rank] = v.proven_tokens;

  auto least = *std::min_element(room.polls.begin(), room.polls.end());
  if (least == room.verdict) return std::nullopt;
  room.verdict = least;
  gate_verdict out;
  out.sequence = ++sequence_;
  out.key = v.key;
  out.poll = least;
  if (least == kv_poll::failed) out.reason = v.reason;
  out.proven_tokens = room.proven.front();
  for (const auto& proven : room.proven)
    for (std::size_t i = 0; i < proven.size(); ++i)
      out.proven_tokens[i] = std::min(out.proven_tokens[i], proven[i]);
  return out;
}

}  // namespace handoff
