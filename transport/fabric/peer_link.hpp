// One peer and session on the engine thread: connection probe, frames, transfers, heartbeats, silence, end.
//
//   opened      has an address; the other side may already talk to it
//   connecting  writes a nonce into the peer's probe region, asks it to read it back (`probe`), and answers
//               the peer's own question (`probe_echo`); both must succeed within settings::probe_timeout
//   ready       transfers and frames
//   failed      nothing more is posted; what is in the provider is waited for until fence or close
#pragma once

#include "transport/fabric/frame_channel.hpp"
#include "transport/fabric/write_queue.hpp"
#include "transport/silence.hpp"

#include <array>
#include <memory>

namespace handoff::transport::fabric {

class peer_link {
 public:
  peer_link(peer_id peer, session_id session, const settings& limits, endpoint_ptr e,
            std::shared_ptr<peer_state> state, counters& count);
  ~peer_link();

  /// Posts receives, registers the regions that are shown, and says what the peer needs to know.
  expected<endpoint_record> open(const provider& p, std::span<const memory_region> regions);
  expected<void> connect(const endpoint_record& remote, time_point now);
  void submit(transfer t, time_point now);
  void send(outgoing_frame frame, time_point now);
  /// Ends everything, tells it, and frees the endpoint.
  void close(bool fenced, std::vector<event>& out);

  /// One round: completions, timers, posts. True if anything moved.
  bool step(time_point now, std::vector<event>& out);
  /// When `step` is needed without an event from outside.
  time_point due() const;
  /// Something is on its way that only polling finds: connecting, or writes and frames wait for the provider.
  bool eager() const { return phase_ == phase::connecting || backlog_; }
  /// Writes move in either direction: a side without a wait descriptor polls until then.
  time_point hot_until() const { return hot_until_; }

  /// Nothing moved lately and no timer is due: it can wait for the next round.
  bool quiet(time_point now) const;
  endpoint& local() { return *endpoint_; }

 private:
  enum class phase : std::uint8_t { opened, connecting, ready, failed };

  bool poll(time_point now, std::vector<event>& out);
  void take(const completion& c, time_point now, std::vector<event>& out);
  void take_frame(const completion& c, time_point now, std::vector<event>& out);
  void check_timers(time_point now, std::vector<event>& out);
  bool post(time_point now, std::vector<event>& out);
  bool post_probe(std::vector<event>& out);
  bool post_own_frames(time_point now, std::vector<event>& out);
  void heard(time_point now, std::vector<event>& out);
  void fail_link(errc code, const std::string& why, std::vector<event>& out);
  void maybe_ready(time_point now, std::vector<event>& out);
  std::uint16_t flags() const { return writes_.empty() ? 0 : flag_writing; }
  std::string name() const;

  peer_id peer_;
  session_id session_;
  settings limits_;
  counters& count_;
  std::shared_ptr<peer_state> state_;
  phase phase_ = phase::opened;

  frame_channel frames_;
  write_queue writes_;
  silence_watch silence_;
  heartbeat_timer heartbeat_;
  std::vector<local_memory> local_;
  std::vector<remote_region> remote_;
  bool backlog_ = false;
  time_point hot_until_{}, last_moved_{}, tell_writing_at_{};

  // The probe. The peer writes into the first 16 bytes of `probe_memory_`.
  using nonce = std::array<std::byte, 16>;
  alignas(64) std::array<std::byte, 64> probe_memory_{};
  nonce nonce_;
  remote_region probe_target_;
  operation probe_write_;
  time_point probe_deadline_ = time_point::max();
  enum class probe_step : std::uint8_t { write, written, ask, asked, confirmed } probe_ = probe_step::write;
  bool echo_due_ = false, echoed_ = false;

  endpoint_ptr endpoint_;  // last: goes first, while the buffers still exist
};

}  // namespace handoff::transport::fabric
