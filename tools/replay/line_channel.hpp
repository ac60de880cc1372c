// Bounded lines over pipes: how the router and its three processes talk.
#pragma once

#include "messages/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace handoff::replay {

/// The longest line either side writes: a summary with all its findings.
inline constexpr std::size_t line_bytes_max = 64 * 1024;

/// Cuts what is read from a descriptor into lines.
class line_reader {
 public:
  explicit line_reader(int fd) : fd_(fd) {}

  enum class state { open, ended };
  /// One read(); blocks only where the descriptor does. limit_exceeded: a line is too long; io.
  expected<state> fill();
  std::optional<std::string> next();

 private:
  int fd_;
  std::string pending_;
};

/// The whole line and its end. io: the reader is gone or, on a non-blocking descriptor, does not read.
error write_line(int fd, std::string_view line);

}  // namespace handoff::replay
