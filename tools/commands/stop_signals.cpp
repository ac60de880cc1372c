#include "tools/commands/stop_signals.hpp"

#include <cerrno>
#include <csignal>
#include <system_error>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace handoff::tools {

stop_signals::stop_signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &both, nullptr);
  fd_ = signalfd(-1, &both, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

stop_signals::~stop_signals() {
  close(fd_);
}

void stop_signals::wait() const {
  pollfd one{fd_, POLLIN, 0};
  while (poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
}

bool stop_signals::take() const {
  signalfd_siginfo taken;
  return read(fd_, &taken, sizeof taken) == sizeof taken;
}

}  // namespace handoff::tools
