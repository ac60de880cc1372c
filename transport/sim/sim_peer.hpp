// One endpoint of a simulated transport: made for one peer and session, with its keys, its frames and its
// transfers. What it decides stands in the shared parts (credits, frame_session, silence, plan_cursor).
#pragma once

#include "transport/credits.hpp"
#include "transport/frame_session.hpp"
#include "transport/plan_cursor.hpp"
#include "transport/silence.hpp"
#include "transport/sim/sim_wire.hpp"

#include <array>
#include <list>
#include <map>

namespace handoff::transport {

class sim_transport;

class sim_peer {
 public:
  sim_peer(sim_transport& owner, peer_id peer, session_id session);
  sim_peer(const sim_peer&) = delete;
  sim_peer& operator=(const sim_peer&) = delete;

  endpoint_record record() const;
  expected<void> connect(const endpoint_record& remote);
  expected<void> submit(transfer t);
  expected<void> send(outgoing_frame frame);
  /// Ends every transfer with this reason; the endpoint is deaf from now on.
  void end(const error& reason);

  // -- from the wire

  std::size_t process() const;
  session_id session() const { return session_.session(); }
  endpoint_address address() const { return address_; }
  endpoint_address remote_address() const { return remote_address_; }
  void frame_arrived(const sim_frame& frame);
  /// Copies the bytes if key and bounds are those of a registration of this endpoint.
  error write_arrived(const sim_write& write);
  void write_completed(std::uint64_t operation, const error& result);
  void remote_ended();

  void add_to(status& s) const;

 private:
  enum class stage : std::uint8_t {
    opened,      ///< its record may be shown; probes of the other side are remembered
    connecting,  ///< knows the other side; waits for the probe in both directions
    ready,       ///< carries frames and transfers
    failed,      ///< posts nothing more; waits for fence or close
  };
  struct run {
    plan_cursor cursor;
  };
  struct operation {
    run* of = nullptr;  ///< null: the probe's, or of a transfer that has ended already
    bool probe = false;
    std::shared_ptr<sim_write> write;
  };

  void at(time_point when, void (sim_peer::*what)());
  remote_region show(std::span<std::byte> memory);

  void pump();
  void pump_writes();
  bool post(run& r);
  void post_write(operation op, const remote_region& target, std::uint64_t offset,
                  std::span<const std::byte> source);
  void transmit(message_type type, std::vector<std::byte> payload);
  void transmit_own(message_type type, frame_class c, std::vector<std::byte> payload = {});
  void settle(run& r);
  void finish(run& r);
  void deadline(transfer_id id);
  void heard();

  void take(const sim_frame& frame);
  void probe();
  void echo();
  void peer_is_ready();
  void probe_deadline();
  void probe_frame(const sim_frame& frame);
  void try_ready();
  void tick();
  void fail_peer(error reason);

  sim_transport& owner_;
  peer_id peer_;
  stage stage_ = stage::opened;
  endpoint_address address_ = 0, remote_address_ = 0;
  std::map<std::uint64_t, std::span<std::byte>> registrations_;  // by key
  endpoint_record remote_;
  std::vector<remote_region> shown_;
  std::array<std::byte, 64> probe_memory_{}, probe_source_{};
  remote_region probe_region_;
  bool probed_ = false, answered_ = false;  ///< the peer's probe was right; ours was answered

  frame_session session_;
  frame_flow flow_;
  silence_watch silence_;
  heartbeat_timer heartbeat_;
  std::list<run> runs_;
  std::map<std::uint64_t, operation> operations_;
  std::uint64_t next_operation_ = 0;
};

}  // namespace handoff::transport
