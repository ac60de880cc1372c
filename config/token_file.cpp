#include "config/token_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace handoff {
namespace {

constexpr std::size_t file_bytes_max = 1024;  // a token and some white space
constexpr std::string_view how_to_make = "a line of `openssl rand -hex 32` is one";

/// Closes on every way out.
struct descriptor {
  int fd;
  explicit descriptor(int fd) : fd(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\r\n";
  auto first = text.find_first_not_of(white);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(white) - first + 1);
}

std::array<char, auth_token::bytes_max> padded(std::string_view text) {
  std::array<char, auth_token::bytes_max> bytes{};
  std::copy_n(text.begin(), std::min(text.size(), bytes.size()), bytes.begin());
  return bytes;
}

}  // namespace

expected<auth_token> auth_token::from_text(std::string_view text) {
  if (text.size() < bytes_min || text.size() > bytes_max)
    return fail(errc::invalid_argument, fmt::format("a token has {} to {} characters, this one has {}; {}",
                                                    bytes_min, bytes_max, text.size(), how_to_make));
  auto printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(text.begin(), text.end(), printable))
    return fail(errc::invalid_argument,
                fmt::format("a token is one word of printable ASCII characters; {}", how_to_make));
  auth_token token;
  token.bytes_ = padded(text);
  token.size_ = text.size();
  return token;
}

bool auth_token::admits(std::string_view given) const {
  bool same = same_bytes(bytes_, padded(given));
  return !required() || (same && given.size() == size_);
}

expected<token_source> read_token_file(const std::string& path, std::string_view named) {
  auto refuse = [&](errc code, std::string_view why) {
    return fail(code, fmt::format("{}: {}: {}", named, path, why));
  };
  auto unreadable = [&](std::string_view why) {
    return refuse(errc::config_syntax, fmt::format("cannot be read: {}", why));
  };
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would block
  if (file.fd < 0) return unreadable(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) return unreadable(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return unreadable("it is no regular file");
  std::array<char, file_bytes_max + 1> text;
  std::size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < text.size(); size += static_cast<std::size_t>(n)) {
    n = ::read(file.fd, text.data() + size, text.size() - size);
    if (n < 0) return unreadable(std::strerror(errno));
  }
  if (size > file_bytes_max)
    return refuse(errc::config_range, fmt::format("it is larger than {} bytes, so it holds no token; {}",
                                                  file_bytes_max, how_to_make));
  auto word = trimmed({text.data(), size});
  if (word.empty()) return refuse(errc::config_range, fmt::format("it is empty; {}", how_to_make));
  auto token = auth_token::from_text(word);
  if (!token) return refuse(errc::config_range, token.error().detail);
  token_source result{*token, {}};
  if (status.st_mode & (S_IRWXO | S_IWGRP))
    result.warning =
        fmt::format("{}: {} has mode {:04o}: other users can read or change the secret; chmod 600 it", named,
                    path, status.st_mode & 07777);
  return result;
}

}  // namespace handoff
