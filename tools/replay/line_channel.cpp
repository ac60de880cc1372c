#include "tools/replay/line_channel.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace handoff::replay {

expected<line_reader::state> line_reader::fill() {
  std::array<char, 16 * 1024> buffer;
  const auto got = read(fd_, buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return state::open;
  if (got < 0) return fail(errc::io, std::generic_category().message(errno));
  if (got == 0) return state::ended;
  pending_.append(buffer.data(), static_cast<std::size_t>(got));
  if (const auto last = pending_.rfind('\n');
      pending_.size() - (last == pending_.npos ? 0 : last + 1) > line_bytes_max)
    return fail(errc::limit_exceeded, fmt::format("a line is longer than {} bytes", line_bytes_max));
  return state::open;
}

std::optional<std::string> line_reader::next() {
  const auto end = pending_.find('\n');
  if (end == pending_.npos) return std::nullopt;
  auto line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

error write_line(int fd, std::string_view line) {
  std::string text(line);
  text += '\n';
  for (std::size_t done = 0; done < text.size();) {
    const auto n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {errc::io, std::generic_category().message(errno), {}};
    done += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace handoff::replay
