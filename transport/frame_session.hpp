// Which incoming frames belong here: session and sequence of their headers. Sequences count from 1, per
// session and direction; a frame gets its number when it is sent, not when it is queued. Pure.
#pragma once

#include "messages/ids.hpp"

#include <cstdint>

namespace handoff::transport {

enum class arrival : std::uint8_t {
  fresh,          ///< take it; numbers that it skipped are lost
  late,           ///< a duplicate, or overtaken by a later one: drop
  other_session,  ///< drop
};

class frame_session {
 public:
  explicit frame_session(session_id session) : session_(session) {}

  session_id session() const { return session_; }

  /// The number that the next frame is sent with; `sent` once it was.
  std::uint64_t next_sequence() const { return last_sent_ + 1; }
  void sent() { ++last_sent_; }

  arrival check(session_id session, std::uint64_t sequence) {
    if (session != session_) return arrival::other_session;
    if (sequence <= last_received_) return arrival::late;
    missed_ += sequence - last_received_ - 1;
    last_received_ = sequence;
    return arrival::fresh;
  }

  /// Numbers that were passed over: lost frames. Not zero on a reliable wire means that it is broken.
  std::uint64_t missed() const { return missed_; }

 private:
  session_id session_;
  std::uint64_t last_sent_ = 0, last_received_ = 0, missed_ = 0;
};

}  // namespace handoff::transport
