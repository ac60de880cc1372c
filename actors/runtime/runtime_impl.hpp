// What stands behind the embedding API: the actors, the transport and the memory of one runtime. Making and
// ending are in assembly.cpp, the engine's calls in runtime.cpp.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/log/logger.hpp"
#include "actors/runtime.hpp"
#include "actors/runtime/verdict_queue.hpp"
#include "config/token_file.hpp"
#include "messages/metadata_row.hpp"
#include "transport/transport.hpp"

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <caf/io/all.hpp>

namespace handoff {

/// Hands the transport's events to the transfer engine: one message per batch.
class batch_sink final : public transport::event_sink {
 public:
  void serve(transfer_engine_interface target) { target_ = std::move(target); }
  void on_events(std::span<transport::event> events) override {
    auto batch = std::make_shared<std::vector<transport::event>>(std::make_move_iterator(events.begin()),
                                                                 std::make_move_iterator(events.end()));
    tell(target_, transport_batch{std::move(batch)});
  }

 private:
  transfer_engine_interface target_;
};

struct system_config : caf::actor_system_config {
  explicit system_config(std::uint32_t workers) {
    // Outside threads wake idle actors in ~12 us with the sharing policy, ~140 us with CAF's default.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", std::size_t{workers});
    load<caf::io::middleman>();
  }
};

struct runtime::impl {
  explicit impl(runtime_options o);

  engine_identity identity() const {
    return {options.config.engine.name, incarnation, options.rank, options.role};
  }
  error listen();
  void spawn_control();
  void spawn_rank();
  void announce_rank();
  status_report ask_status();
  bool quiet(const quiesce_call& call, std::chrono::milliseconds deadline);
  std::span<std::byte> sink_row(slot_id slot) {
    return std::span(sink_rows).subspan(std::size_t{slot.value} * row_schema::row_bytes,
                                        row_schema::row_bytes);
  }
  bool busy(room_side side, room_id room) const { return active[side == room_side::sink].contains(room); }

  runtime_options options;
  logger log;
  incarnation_id incarnation;
  auth_token token;
  std::vector<pool_description> pools;
  std::shared_ptr<const layout_descriptor> layout;
  std::vector<std::byte> sink_rows, source_rows;
  std::shared_ptr<event_channel> events;
  std::vector<int> listeners;
  std::string control_address, bootstrap_address;
  batch_sink sink;
  std::shared_ptr<transport::transport> transport;

  system_config config;
  std::unique_ptr<caf::actor_system> system;
  caf::actor broker;
  bootstrap_client_interface directory;
  bootstrap_interface registry;
  monitor_interface monitor;
  transfer_engine_interface engine;
  prefill_interface prefill;
  decode_interface decode;
  drain_interface drainer;

  // The engine's thread only.
  std::unordered_set<room_id> active[2];                ///< by side: called for and not released yet
  std::unordered_map<room_id, queued_event> succeeded;  ///< sink rooms whose row was not taken yet
  bool started = false, closed = false;
};

}  // namespace handoff
