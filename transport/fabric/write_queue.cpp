#include "transport/fabric/write_queue.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace handoff::transport::fabric {

namespace {
/// Writes posted to one peer before the next peer has its turn.
constexpr int burst = 16;
}  // namespace

void write_queue::add(transfer t, time_point now) {
  const auto deadline = now + t.timeout;
  transfers_.push_back({plan_cursor(std::move(t), limits_.write_bytes_max), deadline});
  next_deadline_ = std::min(next_deadline_, deadline);
  settle_due_ = true;  // a transfer without blocks is flushed already
}

operation& write_queue::take_operation() {
  if (free_.empty()) {
    auto& op = operations_.emplace_back();
    op.kind = operation::kind_t::write;
    return op;
  }
  auto* op = free_.back();
  free_.pop_back();
  return *op;
}

write_queue::outcome write_queue::post(endpoint& e, std::span<const local_memory> local,
                                       std::span<const remote_region> remote) {
  int posted = 0;
  for (auto& t : transfers_) {
    while (const auto* piece = t.cursor.next_write()) {
      if (posted == burst) return outcome::moved;
      if (in_flight_ >= limits_.window) return posted > 0 ? outcome::moved : outcome::idle;
      const auto& from = local[piece->local.value];
      const auto& to = remote[piece->remote.value];
      auto& op = take_operation();
      op.cursor = &t.cursor;
      op.bytes = piece->bytes;
      const auto status = e.post_write(from.base + piece->local_offset, piece->bytes,
                                       to.base + piece->remote_offset, to.key, from.descriptor, op);
      if (status != 0) free_.push_back(&op);
      if (status == -FI_EAGAIN) {
        if (!t.stalled) {
          t.cursor.retried();
          count_.writes_retried.add();
        }
        t.stalled = true;
        return posted > 0 ? outcome::moved : outcome::later;
      }
      if (status != 0) {
        failure_ = describe_failure("fi_writemsg", status);
        t.cursor.stop(error{errc::transport_post, failure_, {}});
        settle_due_ = true;
        return outcome::failed;
      }
      t.stalled = false;
      t.cursor.posted();
      ++posted;
      ++in_flight_;
      count_.writes_posted.add();
      count_.writes_in_flight.add();
    }
  }
  return posted > 0 ? outcome::moved : outcome::idle;
}

void write_queue::completed(operation& op, error reason) {
  --in_flight_;
  count_.writes_in_flight.sub();
  if (reason) {
    op.cursor->write_failed(std::move(reason));
  } else {
    op.cursor->delivered(op.bytes);
    count_.bytes_written.add(op.bytes);
  }
  free_.push_back(&op);
  settle_due_ = true;
}

void write_queue::tell(entry& e, transfer_done done, std::vector<event>& out) {
  e.told = true;
  count_.transfers_active.sub();
  (done.result ? count_.transfers_failed : count_.transfers_done).add();
  out.emplace_back(std::move(done));
}

void write_queue::settle(frame_channel& frames, std::vector<event>& out) {
  if (!std::exchange(settle_due_, false)) return;
  for (auto it = transfers_.begin(); it != transfers_.end();) {
    auto& t = *it;
    if (!t.told && t.cursor.wants_notify()) frames.push_notify(t.cursor.take_notify());
    if (!t.cursor.finished()) {
      ++it;
      continue;
    }
    if (!t.told) tell(t, t.cursor.done(), out);
    it = transfers_.erase(it);
  }
}

void write_queue::expire(time_point now, std::vector<event>& out) {
  if (now < next_deadline_) return;
  next_deadline_ = time_point::max();
  for (auto& t : transfers_) {
    if (t.told) continue;
    if (t.deadline > now) {
      next_deadline_ = std::min(next_deadline_, t.deadline);
      continue;
    }
    t.cursor.stop(error{errc::timed_out,
                        fmt::format("transfer {} to peer {}: {} writes were not delivered by its deadline",
                                    t.cursor.id().value, t.cursor.peer().value, t.cursor.outstanding()),
                        {}});
    tell(t, t.cursor.done(), out);
  }
  settle_due_ = true;
}

void write_queue::stop(const error& reason) {
  for (auto& t : transfers_) t.cursor.stop(reason);
  settle_due_ = true;
}

void write_queue::end_all(const error& reason, std::vector<event>& out) {
  for (auto& t : transfers_) {
    t.cursor.stop(reason);
    if (t.told) continue;
    auto done = t.cursor.done();
    done.drained = true;
    tell(t, std::move(done), out);
  }
  count_.writes_in_flight.sub(in_flight_);
  in_flight_ = 0;
  transfers_.clear();
}

}  // namespace handoff::transport::fabric
