// Transfers to one peer: a window of writes over the transfers in order, their deadlines, their ends. Runs on
// the engine thread.
#pragma once

#include "transport/fabric/counters.hpp"
#include "transport/fabric/endpoint.hpp"
#include "transport/fabric/frame_channel.hpp"
#include "transport/plan_cursor.hpp"

#include <deque>
#include <list>

namespace handoff::transport::fabric {

/// One region of this side: where it is, and the provider's descriptor for it.
struct local_memory {
  std::byte* base = nullptr;
  void* descriptor = nullptr;
};

class write_queue {
 public:
  write_queue(const settings& limits, counters& count) : limits_(limits), count_(count) {}

  void add(transfer t, time_point now);
  bool empty() const { return transfers_.empty(); }

  enum class outcome : std::uint8_t { idle, moved, later, failed };
  /// Posts up to a burst of writes, as far as window and provider allow.
  outcome post(endpoint& e, std::span<const local_memory> local, std::span<const remote_region> remote);
  const std::string& failure() const { return failure_; }

  /// A write completed: well (`reason` empty) or not.
  void completed(operation& op, error reason);
  /// Hands the notifies of flushed transfers to the channel and ends what is finished.
  void settle(frame_channel& frames, std::vector<event>& out);
  /// Ends transfers whose deadline has passed.
  void expire(time_point now, std::vector<event>& out);
  time_point due() const { return next_deadline_; }

  /// Nothing more is posted; transfers end with `reason` as soon as they have drained.
  void stop(const error& reason);
  /// The endpoint is gone, and with it every operation: ends all.
  void end_all(const error& reason, std::vector<event>& out);

 private:
  struct entry {
    plan_cursor cursor;
    time_point deadline;
    bool told = false;     // transfer_done is out; what the provider still has is waited for
    bool stalled = false;  // its next write was refused; counted once
  };
  void tell(entry& e, transfer_done done, std::vector<event>& out);
  operation& take_operation();

  settings limits_;
  counters& count_;
  std::list<entry> transfers_;  // stable: operations point at the cursors
  bool settle_due_ = false;
  std::uint32_t in_flight_ = 0;
  time_point next_deadline_ = time_point::max();
  std::deque<operation> operations_;
  std::vector<operation*> free_;
  std::string failure_;
};

}  // namespace handoff::transport::fabric
