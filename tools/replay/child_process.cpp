#include "tools/replay/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace handoff::replay {
namespace {

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
}

/// One way of talking: the parent's end is non-blocking, and no end stays open in other children.
bool make_pipe(int& parent, int& child, bool parent_writes) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  parent = ends[parent_writes ? 1 : 0];
  child = ends[parent_writes ? 0 : 1];
  fcntl(parent, F_SETFL, O_NONBLOCK);
  return true;
}

struct spawn_settings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  spawn_settings(int input, int output) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~spawn_settings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;
};

}  // namespace

expected<child_process> child_process::start(const std::vector<std::string>& arguments,
                                             const std::string& program) {
  int input = -1, output = -1, childs_input = -1, childs_output = -1;
  const auto close_all = [&] {
    for (const int fd : {input, output, childs_input, childs_output})
      if (fd >= 0) close(fd);
  };
  if (!make_pipe(input, childs_input, true) || !make_pipe(output, childs_output, false)) {
    const int problem = errno;
    close_all();
    return fail(errc::io, fmt::format("no pipe: {}", std::generic_category().message(problem)));
  }
  std::vector<std::string> texts{"handoff"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);

  const spawn_settings settings(childs_input, childs_output);
  pid_t pid = -1;
  const int problem =
      posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes, argv.data(), environ);
  if (problem != 0) {
    close_all();
    return fail(errc::io, fmt::format("no process: {}", std::generic_category().message(problem)));
  }
  close(childs_input);
  close(childs_output);
  return child_process(pid, input, output);
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      how_(std::move(other.how_)) {}

child_process::~child_process() {
  if (pid_ < 0) return;
  close_input();
  close(output_);
  if (!ended()) wait(std::chrono::milliseconds(0));
}

void child_process::close_input() {
  if (input_ >= 0) close(std::exchange(input_, -1));
}

std::optional<std::string> child_process::ended() {
  if (how_) return how_;
  int status = 0;
  const auto got = waitpid(pid_, &status, WNOHANG);
  if (got == pid_) how_ = describe_status(status);
  return how_;
}

std::string child_process::wait(std::chrono::milliseconds patience) {
  if (ended()) return *how_;
  // A descriptor of the process turns readable when it ends: no polling of the clock.
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd end{process, POLLIN, 0};
  if (process >= 0) poll(&end, 1, static_cast<int>(patience.count()));
  if (process >= 0) close(process);
  const bool killed = !ended();
  if (killed) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    how_ = patience.count() > 0 ? fmt::format("killed, because it did not end within {} ms", patience.count())
                                : describe_status(status);
  }
  return *how_;
}

bool die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that died before the call is not noticed by it; then another process has taken its place.
  return getppid() == parent;
}

}  // namespace handoff::replay
