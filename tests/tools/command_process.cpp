#include "tests/tools/command_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace handoff::test {
namespace {

using clock = std::chrono::steady_clock;

int milliseconds_until(clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(0, left));
}

/// Appends what is there; false at the end.
bool append(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const auto got = read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

command_process::command_process(const std::vector<std::string>& arguments) {
  std::array<int, 2> to_out{}, to_err{};
  REQUIRE(pipe2(to_out.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(to_err.data(), O_CLOEXEC) == 0);
  std::vector<std::string> texts{HANDOFF_COMMAND};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, to_err[1], STDERR_FILENO);
  const int problem = posix_spawn(&pid_, HANDOFF_COMMAND, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_out[1]);
  close(to_err[1]);
  out_fd_ = to_out[0];
  err_fd_ = to_err[0];
  REQUIRE(problem == 0);
}

command_process::~command_process() {
  for (const int fd : {out_fd_, err_fd_})
    if (fd >= 0) close(fd);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool command_process::read_some(clock::time_point deadline) {
  std::array<pollfd, 2> ends{{{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}}};
  if (out_fd_ < 0 && err_fd_ < 0) return false;
  if (poll(ends.data(), ends.size(), milliseconds_until(deadline)) <= 0) return false;
  if (ends[0].revents != 0 && !append(out_fd_, out)) close(std::exchange(out_fd_, -1));
  if (ends[1].revents != 0 && !append(err_fd_, err)) close(std::exchange(err_fd_, -1));
  return true;
}

bool command_process::wait_for(const std::string& text, std::chrono::seconds bound) {
  const auto deadline = clock::now() + bound;
  while (out.find(text) == out.npos)
    if (!read_some(deadline)) return false;
  return true;
}

int command_process::finish(std::chrono::seconds bound) {
  const auto deadline = clock::now() + bound;
  while (read_some(deadline)) {
  }
  if (out_fd_ >= 0 || err_fd_ >= 0) return -1;
  int status = 0;
  if (waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

command_result run_command(const std::vector<std::string>& arguments) {
  command_process command(arguments);
  const int status = command.finish();
  return {status, command.out, command.err};
}

bool is_gone(pid_t pid, std::chrono::seconds bound) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return errno == ESRCH;
  pollfd end{process, POLLIN, 0};
  const bool ended = poll(&end, 1, static_cast<int>(bound.count() * 1000)) > 0;
  close(process);
  return ended;
}

}  // namespace handoff::test
