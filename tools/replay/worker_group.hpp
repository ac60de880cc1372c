// The router's three processes: their lines, their silence, their ends.
#pragma once

#include "messages/control_messages.hpp"
#include "messages/error.hpp"
#include "tools/replay/child_process.hpp"
#include "tools/replay/control.hpp"
#include "tools/replay/line_channel.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace handoff::replay {

class worker_group {
 public:
  /// An ordered end closes endpoints and joins threads.
  static constexpr std::chrono::milliseconds patience{10'000};

  /// @param interrupt_fd readable when the user wants an end
  /// @param silence how long a worker may say nothing: it answers pings, and speaks up while it sweeps its
  /// pool
  worker_group(int interrupt_fd, std::chrono::milliseconds silence)
      : interrupt_fd_(interrupt_fd), silence_(silence) {}

  /// Starts the process and hands it its setup; its `ready` line comes through `wait`.
  error start(const worker_setup& setup);
  error send(engine_role role, const std::string& line);

  struct message {
    engine_role role;
    control_line line;
  };
  /// Lines that came within `timeout`, at once when there are some. Errors: a worker ended, failed or is
  /// silent (named, with how it ended), aborted (the user's interrupt).
  expected<std::vector<message>> wait(std::chrono::milliseconds timeout);
  /// The next line of that kind from that worker; other lines are kept for later.
  expected<control_line> expect(engine_role role, std::string_view kind);

  /// Ends all in order, kills those that take longer; the text names what did not end well, empty if nothing.
  std::string stop(std::chrono::milliseconds patience_each);
  pid_t pid(engine_role role) const { return workers_.at(role).process.pid(); }

 private:
  struct worker {
    child_process process;
    line_reader reader;
    std::uint64_t heard_ns = 0;
  };

  expected<std::vector<message>> wait_for_new(std::chrono::milliseconds timeout);
  void ping();
  error check_silence() const;
  error read_lines(engine_role role, worker& w, std::vector<message>& out);
  error how_it_ended(engine_role role, worker& w);

  int interrupt_fd_;
  std::map<engine_role, worker> workers_;
  std::vector<message> kept_;  ///< came while another one was expected
  std::chrono::milliseconds silence_;
  std::uint64_t pinged_ns_ = 0;
};

}  // namespace handoff::replay
