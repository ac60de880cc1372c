// What the tests of room machines share: two engines' contexts, their views of each other, a virtual clock,
// and effects as one line of text.
#pragma once

#include "actors/decode/receiver_machine.hpp"
#include "actors/prefill/sender_machine.hpp"
#include "messages/wire.hpp"
#include "tests/support/small_layout.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace handoff::testing {

using namespace std::chrono_literals;

inline time_point at(duration since_start) {
  return time_point{} + 1h + since_start;
}

inline constexpr room_key key1{{7}, {1}}, key2{{7}, {2}};
inline constexpr std::uint64_t tokens = 22;  // of 4-token pages: six, the last one not full
inline constexpr slot_id source_slot{3}, sink_slot{5};
inline constexpr peer_id decode_peer{1}, prefill_peer{2}, other_peer{9};

struct rig {
  std::shared_ptr<layout_descriptor> layout =
      std::make_shared<layout_descriptor>(small_layout({{.pages = 32}}));
  std::uint64_t next_transfer = 1;
  sender_context source{layout,
                        region_id{4},
                        {},
                        "prefill-0 dp0 pp0 cp0 tp0",
                        &next_transfer,
                        120s,
                        120s,
                        60s,
                        60s,
                        10s,
                        30s,
                        10s,
                        64,
                        {},
                        {},
                        5s,
                        180s};
  receiver_context sink{layout, {}, "decode-0 dp0 pp0 cp0 tp0", 120s, 60s, 60s, 10s, 1, {}};

  /// As the source sees a sink, and as the sink sees the source.
  peer_view decode(std::uint32_t number = 0) const {
    return {{decode_peer.value + number},
            {1},
            {fmt::format("decode-{}", number), {11}, {}, engine_role::decode},
            layout,
            region_id{4}};
  }
  peer_view prefill() const {
    return {prefill_peer, {1}, {"prefill-0", {22}, {}, engine_role::prefill}, layout, region_id{4}};
  }

  static std::vector<component_pages> pages(std::uint32_t first = 0, std::uint64_t prefix = 0) {
    return {{component_id{0}, 0, prefix, {{{first}, 6}}}};
  }
  static metadata_row row() { return {42, 22, 0, 0, 0}; }
  static announce_message announce(room_key key = key1, std::uint16_t ranks = 1) {
    return {key, {}, {}, ranks, "request-1"};
  }
  static publish_message publish(room_key key = key1, std::uint32_t first_page = 10) {
    return {key, {}, {}, 0, 1, sink_slot, pages(first_page)};
  }
  static room_result_message positive(room_key key = key1) { return {key, {}, {}, kv_poll::success, {}}; }
  static room_result_message negative(room_key key = key1) {
    return {key, {}, {}, kv_poll::failed, {errc::plan_mismatch, "another plan", "decode-0"}};
  }
  static abort_message abort(bool from_source, room_key key = key1) {
    return {key, {}, {}, from_source, {errc::aborted, "client left", from_source ? "prefill-0" : "decode-0"}};
  }
  static drained_message drained(room_key key = key1) { return {key, {}, {}, true, {}}; }
  static progress_message progress(std::uint64_t last_token, room_key key = key1) {
    return {key, {}, {}, {{component_id{0}, last_token}}};
  }
  /// What a source says that wrote everything by `plan_totals`.
  room_done_message done(room_key key = key1, std::uint32_t first_page = 10) const {
    auto sum = layout::plan_totals(*layout, *layout, pages(first_page), tokens);
    return {key, {}, {}, sink_slot, tokens, sum->bytes, sum->digest, sum->coverage};
  }
};

// -- effects ---------------------------------------------------------------------------------------

template <class Effect>
std::vector<Effect> all(const room_effects& effects) {
  std::vector<Effect> out;
  for (const auto& e : effects)
    if (const auto* x = std::get_if<Effect>(&e)) out.push_back(*x);
  return out;
}

template <class Message>
std::vector<Message> frames(const room_effects& effects) {
  std::vector<Message> out;
  for (const auto& e : all<send_effect>(effects))
    if (const auto* m = std::get_if<Message>(&e.message)) out.push_back(*m);
  return out;
}

inline std::string text(const send_effect& e) {
  auto body = std::visit(
      [](const auto& m) -> std::string {
        using message = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<message, abort_message>)
          return fmt::format("({})", to_string(m.reason.code));
        else if constexpr (std::is_same_v<message, room_result_message>)
          return fmt::format("({})",
                             m.verdict == kv_poll::failed ? to_string(m.reason.code) : to_string(m.verdict));
        else
          return {};
      },
      e.message);
  auto type = std::visit([](const auto& m) { return std::decay_t<decltype(m)>::type; }, e.message);
  return fmt::format("{}{}>{}", to_string(type), body, e.peer.value);
}
inline std::string text(const write_row_effect& e) {
  return fmt::format("row {}", e.slot.value);
}
inline std::string text(const submit_effect& e) {
  return fmt::format("write {}>{}{}", e.what.blocks.size(), e.what.peer.value, e.what.notify ? "+done" : "");
}
inline std::string text(const verdict_effect& e) {
  if (e.poll == kv_poll::failed) return fmt::format("failed({})", to_string(e.reason.code));
  return std::string(to_string(e.poll));
}
inline std::string text(const lease_effect& e) {
  return std::string(to_string(e.state));
}
inline std::string text(const fence_effect& e) {
  return fmt::format("fence {}", e.peer.value);
}
inline std::string text(const free_slot_effect& e) {
  return fmt::format("free {}", e.slot.value);
}

/// "failed(aborted); abort(aborted)>1; drained>1; released; free 3".
inline std::string text(const room_effects& effects) {
  std::string out;
  for (const auto& e : effects) {
    if (!out.empty()) out += "; ";
    out += std::visit([](const auto& x) { return text(x); }, e);
  }
  return out;
}

}  // namespace handoff::testing
