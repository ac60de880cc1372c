// SIGINT and SIGTERM as a descriptor: the command waits on it beside everything else.
#pragma once

namespace handoff::tools {

/// Made before any thread is started: all of them inherit the blocked signals.
class stop_signals {
 public:
  stop_signals();  ///< throws std::system_error
  ~stop_signals();
  stop_signals(const stop_signals&) = delete;
  stop_signals& operator=(const stop_signals&) = delete;

  int fd() const { return fd_; }  ///< readable once a signal came
  void wait() const;
  /// Takes the signal that came, so that the next one is seen; false when none did.
  bool take() const;

 private:
  int fd_;
};

}  // namespace handoff::tools
