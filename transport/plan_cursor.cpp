#include "transport/plan_cursor.hpp"

#include <algorithm>
#include <utility>

namespace handoff::transport {

plan_cursor::plan_cursor(transfer t, std::uint64_t write_bytes_max)
    : transfer_(std::move(t)), write_bytes_max_(write_bytes_max) {
  settle();
}

void plan_cursor::settle() {
  for (;;) {
    while (index_ < list().size() && in_block_ == list()[index_].bytes) {
      ++index_;
      ++blocks_;
      in_block_ = 0;
    }
    if (index_ < list().size() || in_last_ || outstanding_ > 0) return;
    in_last_ = true;
    index_ = 0;
  }
}

const write_piece* plan_cursor::next_write() {
  if (failed() || index_ == list().size()) return nullptr;
  const block& b = list()[index_];
  piece_ = {b.local, b.local_offset + in_block_, b.remote, b.remote_offset + in_block_,
            std::min(write_bytes_max_, b.bytes - in_block_)};
  return &piece_;
}

void plan_cursor::posted() {
  in_block_ += piece_.bytes;
  ++outstanding_;
  ++writes_;
  settle();
}

void plan_cursor::delivered(std::uint64_t bytes) {
  --outstanding_;
  bytes_ += bytes;
  if (!failed()) settle();
}

void plan_cursor::write_failed(error reason) {
  --outstanding_;
  stop(std::move(reason));
}

void plan_cursor::stop(error reason) {
  if (!failed()) result_ = std::move(reason);
}

bool plan_cursor::all_delivered() const {
  return !failed() && in_last_ && index_ == list().size() && outstanding_ == 0;
}

bool plan_cursor::wants_notify() const {
  return all_delivered() && transfer_.notify.has_value();
}

outgoing_frame plan_cursor::take_notify() {
  return std::exchange(transfer_.notify, std::nullopt).value();
}

bool plan_cursor::finished() const {
  return outstanding_ == 0 && (failed() || (all_delivered() && !transfer_.notify));
}

transfer_done plan_cursor::done() const {
  return {transfer_.id, transfer_.peer, result_, outstanding_ == 0, bytes_, blocks_, writes_, retries_};
}

}  // namespace handoff::transport
