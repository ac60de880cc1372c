// Our side of the registry: keeps this rank registered at the configured bootstrap, whatever happens to that,
// and finds the ranks of other engines at the bootstrap that a room names. A bootstrap that is down delays
// new peers and nothing else: sessions that stand go on.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/log/logger.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace handoff {

struct bootstrap_client_settings {
  std::string address;  ///< our own bootstrap, host:port
  duration renew{}, retry{};
  duration resolve_timeout{};  ///< from resolve_call to an answer
  logger log;
};

struct bootstrap_client_state {
  bootstrap_client_state(bootstrap_client_interface::pointer self, bootstrap_client_settings settings,
                         caf::actor broker)
      : self_(self), settings_(std::move(settings)), broker_(std::move(broker)) {}

  void enroll(const registration& what);
  void resolve(resolve_call call);
  void opened(const control_opened& what);
  void received(const control_received& what);
  void closed(const control_closed& what);
  void tick();
  status_part status() const;

 private:
  enum class link_state : std::uint8_t { down, dialling, open };
  /// The connection to one bootstrap.
  struct link {
    link_state state = link_state::down;
    std::uint64_t ticket = 0;
    connection_id connection;
    time_point retry_at;
    topology_snapshot_message snapshot;
    bool has_snapshot = false;
    error last_failure;
  };
  struct question {
    resolve_call call;
    std::string address;  ///< of the bootstrap
    time_point deadline;
  };

  link& link_to(const std::string& address);
  void dial(const std::string& address, link& l);
  void send_registration(const link& l);
  const topology_entry* find(const link& l, const question& q) const;
  void answer_waiting(const std::string& address);
  void expire(time_point now);
  void schedule();

  bootstrap_client_interface::pointer self_;
  bootstrap_client_settings settings_;
  caf::actor broker_;
  std::map<std::string, link> links_;
  std::vector<question> waiting_;
  std::optional<register_rank_message> registration_;
  time_point renew_at_;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t registered_version_ = 0;
  bool tick_pending_ = false;
};

bootstrap_client_interface spawn_bootstrap_client(caf::actor_system& system,
                                                  bootstrap_client_settings settings, caf::actor broker);

}  // namespace handoff
