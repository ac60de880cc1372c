// One simulated engine rank: the parts of a runtime (source and sink rooms, peer desk, directory) over a sim
// transport, the calls of its engine as the runtime's handle makes them, and the invariants that are checked
// after each event and at each landing write.
#pragma once

#include "actors/bootstrap/directory.hpp"
#include "actors/decode/sink_rooms.hpp"
#include "actors/prefill/source_rooms.hpp"
#include "actors/transfer_engine/peer_desk.hpp"
#include "tools/sim/control_net.hpp"
#include "tools/sim/memory.hpp"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff::sim {

/// Every filling of source pages in a world: the words in memory name it.
struct offer_record {
  room_id room;
  attempt_id attempt;  ///< 0 until the room met one
};

/// The bounds of the machines, made short: a simulated second costs events.
struct rank_settings {
  transport::settings transport;
  sender_context source;
  receiver_context sink;
  peer_session_context sessions;
  event_log leases{};
  duration connect_timeout = 1s, resolve_timeout = 1s, renew = 1s, retry = 100ms, tombstones = 30s;
  std::uint32_t lease_ms = 3500;
  std::uint32_t slots = 24, rooms_max = 64, tombstones_max = 4096, peers_max = 16;
  std::size_t events_max = 256;
  std::uint64_t long_pages = 48;
  bool planted = false;  ///< see world_options
};

/// One room on one side of this engine, from its call until `released`.
struct engine_room {
  std::size_t plan = 0;  ///< which of the world's rooms
  unsigned attempt_number = 0;
  room_key key;
  std::uint64_t tokens = 0, prefix = 0;
  std::vector<std::vector<page_id>> pages;  ///< by component
  std::uint16_t offer = 0;                  ///< source
  kv_poll poll = kv_poll::bootstrapping;
  errc code = errc::ok;
  std::string reason;
  time_point since, ended;  ///< by its own clock; by the world's
  duration not_awake{}, bound{};
};

/// How a room ended on one side, kept for comparing both.
struct room_end {
  room_side side = room_side::source;
  std::size_t plan = 0;
  room_key key;
  std::uint16_t offer = 0;  ///< source: its own; sink: of a success, whose bytes it has
  kv_poll poll = kv_poll::failed;
  errc code = errc::ok;
  std::string reason;
  time_point ended;  ///< by the world's clock
};

class rank_host;

/// The serving engine on top of a rank.
class engine_logic {
 public:
  virtual ~engine_logic() = default;
  virtual void on_event(rank_host& rank, const engine_room& room, const queued_event& event) = 0;
};

class rank_host final : public host {
 public:
  rank_host(kernel& k, control_net& net, std::size_t slot, engine_identity self, std::string control_address,
            const std::string& bootstrap_address, rank_settings settings, std::vector<offer_record>& offers,
            std::vector<room_end>& ends, engine_logic& logic, duration skew, int drift_ppm);

  // -- the engine's calls, as runtime makes them; false: refused at once (rank_engine.cpp)

  bool offer(engine_room room, duration lease);
  void send(room_id room, layout::range what, bool last);
  bool announce(engine_room room, const std::string& peer);
  void publish(room_id room, std::uint64_t tokens, std::uint64_t prefix,
               std::vector<std::vector<page_id>> pages);
  void commit(room_id room);
  void commit_all();
  void abort(room_id room, const std::string& why);
  void quiesce(room_id room);
  bool knows(room_side side, room_id room) const { return calls_[number(side)].contains(room); }
  engine_room* find(room_side side, room_id room);
  void set_stall(duration d) { stall_ = d; }

  /// Pages as a long-running engine gives them out; no value while there are too few.
  std::optional<std::vector<std::vector<page_id>>> allocate(std::uint64_t tokens);
  void free_pages(const std::vector<std::vector<page_id>>& pages);

  // -- invariants (rank_checks.cpp)

  void check_landing(std::span<std::byte> target, std::span<const std::byte> source);
  /// Nothing is left of any room, transfer or dead peer. `living`: incarnations that may have a session.
  void check_baseline(const std::set<std::uint64_t>& living);
  void check_liveness();

  // -- host

  void on_control(part to, control_event& event) override;
  std::optional<part> route(message_type type) const override;
  void on_events(std::span<transport::event> events) override;

 private:
  struct rooms_port final : fabric_port {
    rooms_port(rank_host& owner, room_side side) : me(owner), side(side) {}
    void submit(submit_call call) override;
    void send(frame_call call) override;
    void connect(connect_call call) override { pass(std::move(call)); }
    void fence(fence_call call) override;
    template <class Call>
    void pass(Call call);
    rank_host& me;
    room_side side;
  };
  struct desk_port final : peer_desk_port {
    explicit desk_port(rank_host& owner) : me(owner) {}
    void dial(std::uint64_t ticket, const std::string& address) override;
    void send(control_send call) override;
    void close(control_close call) override;
    void resolve(const std::string& peer, rank_coord rank, engine_role role) override;
    void tell_source(rank_event event) override;
    void tell_sink(rank_event event) override;
    rank_host& me;
  };
  struct directory_port final : control_port {
    explicit directory_port(rank_host& owner) : me(owner) {}
    void dial(std::uint64_t ticket, const std::string& address) override;
    void send(control_send call) override;
    void close(control_close call) override;
    rank_host& me;
  };
  struct events_port final : event_port {
    explicit events_port(rank_host& owner) : me(owner) {}
    void push(room_side side, const queued_event& event) override;
    void flush(room_side side) override;
    bool backlogged(room_side side) const override;
    rank_host& me;
  };

  static std::size_t number(room_side side) { return side == room_side::source ? 0 : 1; }
  void tick(part p) override;
  void rearm() override;
  /// After every event of a part: its timer, its answers, what must hold now.
  void after(part p);
  /// One event for one part.
  template <part P, class Event>
  void feed(Event& event) {
    if constexpr (P == part::source)
      source_.handle(event, now());
    else if constexpr (P == part::sink)
      sink_.handle(event, now());
    else if constexpr (P == part::desk)
      desk_.handle(event, now());
    else
      directory_.handle(event, now());
    after(P);
  }
  void take_events();
  void check_event(room_side side, const queued_event& queued);
  void check_success(engine_room& room, slot_id slot);
  void check_proven(const engine_room& room, const proven_by_component& proven);
  void check_gate();
  void check_superseded(const room_message& message);
  void check_landing_row(const place& at, std::span<const std::byte> source);
  void note_submit(const submit_call& call);
  std::uint64_t capacity_left() const { return queue_.size() < settings_.events_max; }

  control_net& net_;
  rank_settings settings_;
  std::vector<offer_record>& offers_;
  std::vector<room_end>& ends_;
  engine_logic& logic_;
  pool_memory memory_;
  rooms_port source_port_, sink_port_;
  desk_port desk_port_;
  directory_port directory_port_;
  std::shared_ptr<events_port> events_;
  directory directory_;
  peer_desk desk_;
  source_rooms source_;
  sink_rooms sink_;
  std::map<std::uint64_t, std::string> questions_;
  std::uint64_t next_question_ = 1;

  // the engine's side of the runtime
  std::unordered_map<room_id, engine_room> calls_[2];
  std::unordered_map<room_id, std::pair<queued_event, engine_room>> succeeded_;  ///< not committed
  std::deque<std::pair<queued_event, engine_room>> queue_, backlog_[2];
  bool take_pending_ = false;
  duration stall_{};
  std::vector<std::deque<page_id>> free_;
  std::unordered_map<room_id, std::pair<attempt_id, time_point>> last_attempt_;  ///< announced, of which call
  std::set<room_id> exposed_[2];  ///< by what left through the ports
};

}  // namespace handoff::sim
