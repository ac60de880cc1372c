// "Flush, then notify": one transfer on its way through a transport. Splits blocks into writes, holds
// `last_blocks` back until all of `blocks` are delivered and the notify until all of those are, stops at the
// first failure, and counts what is in the provider. Pure.
//
//   while (auto* w = cursor.next_write()) { post it; cursor.posted(); }     // as far as the window allows
//   on a completion: cursor.delivered(bytes), or cursor.write_failed(error)
//   if (cursor.wants_notify()) queue cursor.take_notify();
//   if (cursor.finished()) emit cursor.done();
//   at the deadline, fence, close: cursor.stop(error); emit cursor.done() - drained tells the truth
#pragma once

#include "transport/transport.hpp"

namespace handoff::transport {

/// One piece of a block, at most settings::write_bytes_max long.
struct write_piece {
  region_id local;
  std::uint64_t local_offset = 0;
  region_id remote;
  std::uint64_t remote_offset = 0;
  std::uint64_t bytes = 0;
};

class plan_cursor {
 public:
  /// @pre t was checked (transport/validate.hpp) and write_bytes_max > 0
  plan_cursor(transfer t, std::uint64_t write_bytes_max);

  transfer_id id() const { return transfer_.id; }
  peer_id peer() const { return transfer_.peer; }

  /// The write to post now; null: all are posted, the first list is not delivered yet, or it has failed.
  const write_piece* next_write();
  /// next_write() is in the provider.
  void posted();
  /// The provider had no room for next_write(); it stays the next one.
  void retried() { ++retries_; }
  /// A posted write is delivered: its bytes are visible in the peer's memory.
  void delivered(std::uint64_t bytes);
  /// A posted write completed in error.
  void write_failed(error reason);
  /// Nothing more is posted; the first reason is kept. What is in the provider stays outstanding.
  void stop(error reason);

  bool wants_notify() const;
  outgoing_frame take_notify();

  std::uint64_t outstanding() const { return outstanding_; }
  bool failed() const { return bool(result_); }
  /// Nothing is outstanding, and it has failed or everything is done, the notify included.
  bool finished() const;
  /// The event for the sink; `drained` is whether nothing is outstanding. `blocks` counts those whose last
  /// write was posted.
  transfer_done done() const;

 private:
  bool all_delivered() const;
  const std::vector<block>& list() const { return in_last_ ? transfer_.last_blocks : transfer_.blocks; }
  /// Steps over finished and empty blocks and, once `blocks` are delivered, into `last_blocks`.
  void settle();

  transfer transfer_;
  std::uint64_t write_bytes_max_;
  bool in_last_ = false;
  std::size_t index_ = 0;       // into list()
  std::uint64_t in_block_ = 0;  // bytes of that block already posted
  write_piece piece_;
  std::uint64_t outstanding_ = 0;
  std::uint64_t bytes_ = 0, blocks_ = 0, writes_ = 0, retries_ = 0;
  error result_;
};

}  // namespace handoff::transport
