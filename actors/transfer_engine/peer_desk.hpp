// Every peer of one engine rank: finds and connects them, posts plans, carries frames between ranks, and
// tells the rank's rooms about peers that come and go. Decisions about a peer's life stand in
// peer_session_machine. Pure but for the transport that it is given.
#pragma once

#include "actors/log/logger.hpp"
#include "actors/room/failure_injector.hpp"
#include "actors/room/rank_calls.hpp"
#include "actors/transfer_engine/peer.hpp"

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff {

struct peer_desk_settings {
  engine_identity self;
  compatibility_record compatibility;
  std::vector<mismatch_rule> rules;
  std::shared_ptr<const layout_descriptor> layout;
  std::string control_address;  ///< ours, as peers reach it
  std::string provider;         ///< "auto", "tcp" or "shm"
  std::string host_id;
  duration connect_timeout{};
  std::uint32_t peers_max = 0;
  peer_session_context sessions;
  failure_injector failures;
  logger log;
};

/// What the peers ask of others: control connections, the directory, the rooms of both sides.
class peer_desk_port : public control_port {
 public:
  using control_port::send;
  virtual void resolve(const std::string& peer, rank_coord rank, engine_role role) = 0;  ///< `resolved`
  virtual void tell_source(rank_event event) = 0;
  virtual void tell_sink(rank_event event) = 0;
};

class peer_desk {
 public:
  peer_desk(peer_desk_settings settings, transport::transport& transport, peer_desk_port& port);

  /// One call of the rooms, batch of the transport's events, word of a control connection or of the
  /// directory.
  template <class Event>
  void handle(Event& event, time_point now) {
    now_ = now;
    on(event);
  }
  /// No later than `deadline`.
  void tick(time_point now);
  time_point deadline() const;
  status_part status() const;

 private:
  // the rooms
  void on(submit_call& call);
  void on(const frame_call& call);
  void on(const connect_call& call);
  void on(const fence_call& call);
  void on(const no_new_rooms&) { draining_ = true; }

  // the transport
  void on(std::vector<transport::event>& batch);

  // control connections and the registry
  void on(const resolved& what);
  void on(const control_opened& what);
  void on(const control_received& what);
  void on(const control_closed& what);

  // our side of the connect conversation (connect_dialogue.cpp)
  void dial(connect_dialogue& d);
  void request(connect_dialogue& d);
  void replied(connect_dialogue& d, const connect_reply_message& reply);
  void refused(connect_dialogue& d, const error& reason);
  void refused_by_peer(const control_received& what, const error& reason);
  void give_up(connect_dialogue& d, error reason);
  void fall_back(peer_session& p, const error& reason);
  connect_dialogue* dialogue_of_connection(std::uint64_t connection);

  // their side
  void asked_to_connect(const control_received& what, const connect_request_message& request);
  expected<endpoint_record> accept(const connect_request_message& request, peer_id peer,
                                   const endpoint_record*& picked);
  error judge(const engine_identity& peer, const compatibility_record& record,
              const layout_descriptor& layout, bool they_send);
  void replace_older(const engine_identity& peer);
  peer_session& add_peer(peer_id id, const engine_identity& peer, session_id session,
                         std::shared_ptr<const layout_descriptor> layout);
  session_id next_session(const engine_identity& peer) const;

  // peers
  void on(transport::peer_ready& e);
  void on(transport::peer_failed& e);
  void on(transport::peer_silent& e);
  void on(transport::peer_heard& e);
  void on(transport::peer_closed& e);
  void on(transport::frame_received& e);
  void on(transport::transfer_done& e);
  void deliver(peer_session& p, message_type type, std::span<const std::byte> payload);
  void last_word_by_control(peer_session& p, const room_message& message);
  void say_last_words(peer_session& p);
  void last_word_received(const control_received& what);
  peer_session* find(peer_id id, session_id session);
  peer_session* find(peer_id id);
  void carry_out(peer_session& p, const peer_session_effects& effects);
  void tell_rooms_ready(peer_session& p);
  void tell_rooms_lost(peer_session& p, const error& reason);
  peer_view view(const peer_session& p) const;
  void close_control(std::uint64_t connection);
  template <class T>
  void control(std::uint64_t connection, const T& message);

  peer_desk_settings settings_;
  transport::transport* transport_;
  peer_desk_port& port_;
  std::map<peer_id, peer_session> peers_;
  std::vector<connect_dialogue> dialogues_;
  /// Last number used with each life of a peer, apart for sessions that we asked for and that they asked for:
  /// two engines that ask each other at the same time get one session each.
  std::map<incarnation_id, session_id> asked_by_us_, asked_by_them_;
  std::uint32_t next_peer_ = 1;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t unroutable_frames_ = 0;
  connection_id condemned_;  ///< being closed for what came on it: the rest of that is not looked at
  bool draining_ = false;
  time_point now_;  ///< of the event that is being handled
};

}  // namespace handoff
