// One room on its source rank: from the first sign of it (an offer of the engine, or an announce or publish
// of a sink) until its pages are free again. Pure: the actor feeds events and carries out effects.
//
//   unclaimed   a sink announced or published before the engine offered; bounded
//   offered     the engine offered; not every announced sink rank has published          (bootstrapping)
//   ready       every sink rank's destinations are known                                  (waiting_for_input)
//   sending     at least one chunk was posted                                             (transferring)
//   confirming  everything and `room_done` is out; every sink rank's verdict is awaited   (transferring)
//   succeeded   every sink rank confirmed                                                 (success)
//   failed      ended; writes still drain, then the lease is released                     (failed)
#pragma once

#include "actors/prefill/sent_ranges.hpp"
#include "actors/room/state_clock.hpp"
#include "transport/layout/plan.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

enum class sender_state : std::uint8_t { unclaimed, offered, ready, sending, confirming, succeeded, failed };
inline constexpr std::size_t sender_state_count = 7;
std::string_view to_string(sender_state state);

/// What all rooms of a rank share; outlives the machines.
struct sender_context {
  std::shared_ptr<const layout_descriptor> layout;  ///< ours
  region_id metadata_region;                        ///< ours, holds the private rows
  rank_coord rank;
  std::string origin;                      ///< "prefill-0 dp0 pp0 cp0 tp0": stands in errors first seen here
  std::uint64_t* next_transfer = nullptr;  ///< ids of transfers, shared by all rooms of the runtime
  duration unclaimed_timeout{};            ///< a sink is here, the engine has not offered
  duration bootstrap_timeout{};            ///< offered, not every sink rank has published
  duration send_timeout{};                 ///< ready, no chunk yet
  duration sending_timeout = std::chrono::seconds(60);  ///< from the first chunk to the last byte
  duration result_timeout{};                            ///< all is out, the sinks' verdict is awaited
  duration transfer_timeout{};                          ///< of each submitted transfer
  duration quarantine_timeout{};  ///< ended, writes still in flight: then the endpoint is fenced
  std::size_t chunks_max = 65'536;
  transition_log log;
  event_log events{};
  duration announce_interval{};  ///< how often a waiting sink renews
  duration renewed_max{};        ///< from the first announce on; later ones renew no further
};

class sender_machine {
 public:
  sender_machine(room_key key, const sender_context& context, time_point now);

  // events of the engine
  /// The actor has reserved the lease and a private slot; both are given back by `lease_effect{released}` and
  /// `free_slot_effect`, in any case. `lease` (0: bootstrap_timeout) bounds the wait for the sinks' pages;
  /// each announce renews it, for three announce intervals at least.
  void offer(std::vector<component_pages> pages, std::uint64_t tokens, slot_id slot, duration lease,
             std::string label, time_point now, room_effects& out);
  /// Chunks wait for their destinations when these are not published yet. Each (token, layer) is sent once;
  /// the row comes with the last chunk and only with it. invalid_argument, room_state, limit_exceeded,
  /// coverage_gap (last, but something was not sent): nothing changed. Until every sink rank has published
  /// the prefixes are not known, and "last" needs everything from the source's own first tokens on.
  error send(layout::range what, bool last, std::optional<metadata_row> row, time_point now,
             room_effects& out);
  /// Once `room_done` is on its way to a sink, the sink decides: it is told, and the room ends by its
  /// verdict.
  void abort(error reason, time_point now, room_effects& out);

  // events of peers; a message of a newer attempt ends the room and must be kept for after `finished()`
  void announce(const peer_view& from, const announce_message& message, time_point now, room_effects& out);
  void publish(const peer_view& from, const publish_message& message, time_point now, room_effects& out);
  void result(const peer_view& from, const room_result_message& message, time_point now, room_effects& out);
  void peer_abort(const peer_view& from, const abort_message& message, time_point now, room_effects& out);
  void peer_lost(peer_id peer, const error& reason, time_point now, room_effects& out);
  /// The endpoint of this peer is gone: no operation of ours is in the provider any more.
  void peer_closed(peer_id peer, time_point now, room_effects& out);

  // events of the transport and the clock
  void transfer_done(const transport::transfer_done& done, time_point now, room_effects& out);
  void tick(time_point now, room_effects& out);

  /// The attempt is 0 until the first announce or publish was met.
  room_key key() const { return key_; }
  sender_state state() const { return clock_.state(); }
  kv_poll poll() const;
  const error& reason() const { return reason_; }
  const std::string& label() const { return label_; }
  /// Everything is settled: terminal and released. The actor keeps a tombstone and drops the machine.
  bool finished() const;
  /// When `tick` must be called next; max() if never.
  time_point deadline() const;
  waiting_on waits() const;
  duration time_in(sender_state state, time_point now) const { return clock_.time_in(state, now); }

 private:
  void note(std::string_view event) const {
    if (context_->events) context_->events(to_string(state()), event);
  }
  struct sink {
    peer_view view;
    rank_coord rank;
    bool announced = false;
    bool published = false;        ///< every part is here
    bool checked = false;          ///< its pages were found good
    bool final_submitted = false;  ///< row and room_done
    bool confirmed = false;        ///< its positive result is here
    bool lost = false;             ///< its session is over: no more frames
    bool owes_drained = false;     ///< `drained` goes out once its writes have drained
    bool stranger = false;         ///< met after the end, not one of the room's
    explicit sink(const layout_descriptor& ours) : delivered(ours) {}

    slot_id slot;
    std::vector<std::optional<std::vector<component_pages>>> parts;
    std::vector<component_pages> pages;
    layout::totals sent;
    sent_ranges delivered;
    std::uint64_t told = 0;                          ///< tokens of all components in the last progress
    std::map<transfer_id, layout::range> in_flight;  ///< not drained; what each moves
  };

  // sender_machine.cpp: the room's life
  void move(sender_state to, time_point now);
  void fail(error reason, const sink* told, time_point now, room_effects& out);
  void give_up(error reason, time_point now, room_effects& out);
  void renew(time_point now);
  error first_reason(const error& reason) const { return giving_up_ ? giving_up_ : reason; }
  void settle(time_point now, room_effects& out);
  void check_ready(time_point now, room_effects& out);
  void check_done(time_point now, room_effects& out);
  bool gathering() const { return state() == sender_state::unclaimed || state() == sender_state::offered; }
  bool terminal() const { return state() == sender_state::succeeded || state() == sender_state::failed; }
  bool drained() const;

  // sender_peers.cpp: what sinks say
  bool accept(const peer_view& from, room_key key, time_point now, room_effects& out);
  sink* meet(const peer_view& from, room_key key, rank_coord rank, room_effects& out);
  sink* find(peer_id peer);
  error collect(sink& s, const publish_message& message);
  void refuse(const peer_view& from, room_key key, rank_coord rank, const error& reason, room_effects& out);
  void answer_ended(const peer_view& from, rank_coord rank, bool tell, time_point now, room_effects& out);

  // sender_chunks.cpp: what goes out
  error check_chunk(const layout::range& what, bool last, bool row) const;
  error check_last(const layout::range& what) const;
  void post_queued(time_point now, room_effects& out);
  void post(sink& s, const layout::range& what, layout::chunk_plan plan, bool final, room_effects& out);
  void submit(sink& s, const layout::range& what, std::vector<transport::block> blocks, bool final,
              room_effects& out);
  void tell_progress(sink& s, room_effects& out);
  void begin_sending(time_point now, room_effects& out);

  room_key key_;
  const sender_context* context_;
  state_clock<sender_state, sender_state_count> clock_;
  error reason_;
  error giving_up_;  ///< we want to end, a sink that may have everything already decides
  std::string label_;
  std::vector<sink> sinks_;
  std::uint16_t sinks_expected_ = 0;  ///< 0: no announce yet

  bool claimed_ = false;  ///< the engine offered
  std::vector<component_pages> pages_;
  std::uint64_t tokens_ = 0;
  slot_id slot_;
  sent_ranges sent_;
  std::vector<layout::range> queued_;
  std::size_t chunks_ = 0;
  std::optional<metadata_row> row_;  ///< set: the last chunk was sent
  bool row_written_ = false;

  bool exposed_ = false, quarantined_ = false, released_ = false;
  duration lease_{};
  std::optional<time_point> announced_at_;  ///< the first announce
  time_point bootstrap_deadline_, give_up_deadline_, fence_at_;
};

}  // namespace handoff
