// A process, as a rule of this same program, with pipes as its standard input and output. It dies with its
// parent.
#pragma once

#include "messages/error.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace handoff::replay {

class child_process {
 public:
  static constexpr const char* this_program = "/proc/self/exe";

  /// Starts the program with these arguments, in a process group of its own: a terminal's Ctrl-C reaches the
  /// parent alone, which ends its children in order.
  static expected<child_process> start(const std::vector<std::string>& arguments,
                                       const std::string& program = this_program);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) = delete;
  ~child_process();  ///< kills what still runs

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    ///< write end, non-blocking
  int output() const { return output_; }  ///< read end, non-blocking

  void close_input();
  /// How it ended, for people ("exit status 4", "killed by signal 9"; "" = exit status 0); nothing while it
  /// runs.
  std::optional<std::string> ended();
  /// Waits so long, then kills it. The same text.
  std::string wait(std::chrono::milliseconds patience);

 private:
  child_process(pid_t pid, int input, int output) : pid_(pid), input_(input), output_(output) {}

  pid_t pid_;
  int input_, output_;
  std::optional<std::string> how_;
};

/// To be called first in a child: it is killed when its parent dies, in whatever state it is.
/// @return false if the parent is gone already
bool die_with_parent(pid_t parent);

}  // namespace handoff::replay
