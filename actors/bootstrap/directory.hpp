// Our side of the registry: keeps this rank registered at the configured bootstrap, whatever happens to that,
// and finds the ranks of other engines at the bootstrap that a room names. A bootstrap that is down delays
// new peers and nothing else: sessions that stand go on. Pure.
#pragma once

#include "actors/log/logger.hpp"
#include "actors/room/rank_calls.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace handoff {

struct directory_settings {
  std::string address;  ///< our own bootstrap, host:port
  duration renew{}, retry{};
  duration resolve_timeout{};  ///< from resolve_call to an answer
  logger log;
};

/// Register our rank and keep the registration alive.
struct registration {
  register_rank_message what;
};

class directory {
 public:
  directory(directory_settings settings, control_port& control)
      : settings_(std::move(settings)), control_(control) {}

  /// The rank of an engine at a bootstrap endpoint (host:port) or by name. The answer, with its question's
  /// number, stands in `take_answers` within resolve_timeout.
  void resolve(std::uint64_t question, const std::string& peer, rank_coord rank, engine_role role,
               time_point now);
  /// A registration, the end of new rooms, or one word of a control connection.
  template <class Event>
  void handle(Event& event, time_point now) {
    now_ = now;
    on(event);
  }
  /// This rank ends: the registry may forget it before its lease does.
  void leave();
  /// No later than `deadline`.
  void tick(time_point now);
  time_point deadline() const;
  std::vector<std::pair<std::uint64_t, resolved>> take_answers() { return std::exchange(answers_, {}); }
  status_part status() const;

 private:
  void on(const registration& what);
  void on(const no_new_rooms&);
  void on(const control_opened& what);
  void on(const control_received& what);
  void on(const control_closed& what);

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
    std::uint64_t number = 0;
    std::string peer;
    rank_coord rank;
    engine_role role = engine_role::prefill;
    std::string address;  ///< of the bootstrap
    time_point deadline;
  };

  link& link_to(const std::string& address);
  void dial(const std::string& address, link& l);
  void send_registration(const link& l);
  /// The link to our own bootstrap, if it is open.
  const link* own_link() const;
  const topology_entry* find(const link& l, const question& q) const;
  void answer_waiting(const std::string& address);
  void give_up(const std::string& address, const error& reason);
  void expire(time_point now);

  directory_settings settings_;
  control_port& control_;
  std::map<std::string, link> links_;
  std::vector<question> waiting_;
  std::optional<register_rank_message> registration_;
  time_point renew_at_;
  std::uint64_t next_ticket_ = 1;
  std::vector<std::pair<std::uint64_t, resolved>> answers_;
  time_point now_;  ///< of the event that is being handled
};

}  // namespace handoff
