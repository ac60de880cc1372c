// The checked values of one engine's configuration file; 64 ranks share one. Role and rank come from the
// command line, pools from the embedder. Keys in the file are named like the members: /transport/window.
// Ranges, units and sentences of the keys stand in keys.cpp.
#pragma once

#include "config/defaults.hpp"
#include "config/testing.hpp"
#include "messages/compatibility.hpp"
#include "messages/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

struct engine_section {
  std::string name;  ///< required; peers and texts know the engine by it
};

/// What the engine serves; goes into the compatibility record.
struct model_section {
  std::string name;  ///< required; a name of model_geometry.hpp where pools are made for it
  std::string revision;
  std::string kv_dtype{defaults::kv_dtype};
  std::string draft;
  std::string kernel_packing{defaults::kernel_packing};
  std::string embedder_tag;
};

struct memory_section {
  std::uint32_t page_tokens = defaults::page_tokens;
  std::uint32_t slots = defaults::slots;
};

struct bootstrap_section {
  std::string address{defaults::bootstrap_address};  ///< where the registry is reached
  bool serve = false;                                ///< run the registry in this process
  std::string bind{defaults::bootstrap_address};     ///< where it listens when it is served here
};

struct control_section {
  std::string bind{defaults::control_bind};
  std::string advertise;  ///< host that peers connect to; empty: the one that is bound
};

struct transport_section {
  std::string provider{defaults::provider};  ///< "auto", "tcp" or "shm"
  std::string bind{defaults::transport_bind};
  std::uint64_t write_bytes_max = defaults::write_bytes_max;
  std::uint32_t window = defaults::window;
  std::uint32_t transfers_max = defaults::transfers_max;
  std::uint32_t peers_max = defaults::peers_max;
  std::uint32_t spin_us = defaults::spin_us;
  std::uint32_t nap_max_us = defaults::nap_max_us;
  std::uint32_t heartbeat_interval_ms = defaults::heartbeat_interval_ms;
  std::uint32_t suspect_after_ms = defaults::suspect_after_ms;
  std::uint32_t gone_after_ms = defaults::gone_after_ms;
};

/// Every wait has its bound here; defaults.hpp gives the reasons.
struct timeouts_section {
  std::uint32_t room_bootstrap_ms = defaults::room_bootstrap_ms;
  std::uint32_t room_waiting_ms = defaults::room_waiting_ms;
  std::uint32_t room_announce_ms = defaults::room_announce_ms;
  std::uint32_t room_transferring_ms = defaults::room_transferring_ms;
  std::uint32_t room_result_ms = defaults::room_result_ms;
  std::uint32_t quarantine_ms = defaults::quarantine_ms;
  std::uint32_t transfer_ms = defaults::transfer_ms;
  std::uint32_t connect_ms = defaults::connect_ms;
  std::uint32_t probe_ms = defaults::probe_ms;
  std::uint32_t retry_ms = defaults::retry_ms;
  std::uint32_t bootstrap_lease_ms = defaults::bootstrap_lease_ms;
  std::uint32_t bootstrap_renew_ms = defaults::bootstrap_renew_ms;
  std::uint32_t tombstone_ms = defaults::tombstone_ms;
  std::uint32_t drain_ms = defaults::drain_ms;
  std::uint32_t status_ms = defaults::status_ms;
};

/// Who may talk to the control plane.
struct security_section {
  std::string token_file;              ///< holds the secret that all processes share; empty: no token
  bool allow_unauthenticated = false;  ///< other binds than loopback without a token
};

struct limits_section {
  std::uint32_t rooms = defaults::rooms;
  std::uint32_t events = defaults::events;
  std::uint32_t tombstones = defaults::tombstones;
  std::uint32_t chunks_per_room = defaults::chunks_per_room;
  std::uint32_t control_connections = defaults::control_connections;
  std::uint32_t control_unauthenticated = defaults::control_unauthenticated;
  std::uint32_t control_rate = defaults::control_rate;
};

struct actors_section {
  std::uint32_t workers = defaults::actor_workers;
};

struct compatibility_section {
  std::vector<mismatch_rule> rules;  ///< sorted by field; fields that are not listed refuse
};

struct log_section {
  std::string level{defaults::log_level};  ///< "error", "warn", "info" or "debug"
};

struct engine_config {
  engine_section engine;
  model_section model;
  memory_section memory;
  bootstrap_section bootstrap;
  control_section control;
  transport_section transport;
  timeouts_section timeouts;
  security_section security;
  limits_section limits;
  actors_section actors;
  compatibility_section compatibility;
  log_section log;
  testing_section testing;
};

/// Checks ranges and relations of a configuration that was made in code, as the loader does for a file.
/// `origin` begins every line of the error's detail.
expected<void> check_config(const engine_config& config, const std::string& origin);

}  // namespace handoff
