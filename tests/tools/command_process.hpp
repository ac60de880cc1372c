// Runs the built command as a child, as a person would, with a bound on its time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace handoff::test {

class command_process {
 public:
  explicit command_process(const std::vector<std::string>& arguments);
  ~command_process();  ///< kills what still runs
  command_process(const command_process&) = delete;
  command_process& operator=(const command_process&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads until this text has come; false when the process ended or the bound passed before.
  bool wait_for(const std::string& text, std::chrono::seconds bound = std::chrono::seconds(60));
  /// Reads to the end; the exit status, 128 + number for a signal, -1 when the bound passed.
  int finish(std::chrono::seconds bound = std::chrono::seconds(90));

  std::string out, err;

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
};

struct command_result {
  int status;
  std::string out, err;
};
command_result run_command(const std::vector<std::string>& arguments);

/// Waits until the process is no more (or only waits to be reaped).
bool is_gone(pid_t pid, std::chrono::seconds bound = std::chrono::seconds(10));

}  // namespace handoff::test
