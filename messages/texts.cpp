// Names and sentences for people; messages/*.hpp declare them.
#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "messages/ids.hpp"
#include "messages/kv_poll.hpp"
#include "messages/layout.hpp"
#include "messages/message_type.hpp"

#include <array>

#include <fmt/format.h>

namespace handoff {

std::string to_string(const room_key& key) {
  return fmt::format("room {} attempt {}", key.room.value, key.attempt.value);
}

std::string to_string(const rank_coord& r) {
  return fmt::format("dp{} pp{} cp{} tp{}", r.dp, r.pp, r.cp, r.tp);
}

std::string_view to_string(kv_poll poll) {
  switch (poll) {
    case kv_poll::failed:
      return "failed";
    case kv_poll::bootstrapping:
      return "bootstrapping";
    case kv_poll::waiting_for_input:
      return "waiting_for_input";
    case kv_poll::transferring:
      return "transferring";
    case kv_poll::success:
      return "success";
  }
  return "invalid";
}

std::string_view to_string(memory_kind kind) {
  switch (kind) {
    case memory_kind::host:
      return "host";
    case memory_kind::cuda:
      return "cuda";
    case memory_kind::device_sim:
      return "device_sim";
  }
  return "invalid";
}

std::string_view to_string(buffer_kind kind) {
  static constexpr std::array<std::string_view, 13> names{
      "key",      "value", "latent", "mamba",       "swa",     "swa_ring", "dsa",
      "dsa_tail", "c4",    "c128",   "block_scale", "index_k", "row"};
  auto i = static_cast<std::size_t>(kind);
  return i < names.size() ? names[i] : "invalid";
}

std::string_view to_string(component_kind kind) {
  switch (kind) {
    case component_kind::kv:
      return "kv";
    case component_kind::state:
      return "state";
    case component_kind::metadata:
      return "metadata";
  }
  return "invalid";
}

std::string_view to_string(engine_role role) {
  switch (role) {
    case engine_role::bootstrap:
      return "bootstrap";
    case engine_role::prefill:
      return "prefill";
    case engine_role::decode:
      return "decode";
  }
  return "invalid";
}

std::string_view to_string(message_type type) {
  switch (type) {
    case message_type::none:
      return "none";
    case message_type::probe:
      return "probe";
    case message_type::probe_echo:
      return "probe_echo";
    case message_type::heartbeat:
      return "heartbeat";
    case message_type::credit:
      return "credit";
    case message_type::announce:
      return "announce";
    case message_type::publish:
      return "publish";
    case message_type::room_result:
      return "room_result";
    case message_type::room_done:
      return "room_done";
    case message_type::abort:
      return "abort";
    case message_type::progress:
      return "progress";
    case message_type::drained:
      return "drained";
    case message_type::hello:
      return "hello";
    case message_type::hello_ok:
      return "hello_ok";
    case message_type::refusal:
      return "refusal";
    case message_type::register_rank:
      return "register_rank";
    case message_type::register_ok:
      return "register_ok";
    case message_type::topology_query:
      return "topology_query";
    case message_type::topology_snapshot:
      return "topology_snapshot";
    case message_type::unregister_rank:
      return "unregister_rank";
    case message_type::connect_request:
      return "connect_request";
    case message_type::connect_reply:
      return "connect_reply";
    case message_type::drain_request:
      return "drain_request";
    case message_type::drain_reply:
      return "drain_reply";
  }
  return "unknown";
}

}  // namespace handoff
