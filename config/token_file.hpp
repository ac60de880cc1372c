// The secret that all processes of one deployment share: read from a file of its own, carried by every hello,
// compared in a time that says nothing about it. The configuration holds the file's name only, and nothing
// prints or logs what stands in it.
#pragma once

#include "messages/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace handoff {

/// Two ranges of the same length, each read once from end to end, whatever they hold.
template <class Bytes>
bool same_bytes(const Bytes& a, const Bytes& b) {
  volatile std::uint8_t difference = 0;  // volatile: the loop must not learn to stop early
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<std::uint8_t>(difference | static_cast<std::uint8_t>(a[i] ^ b[i]));
  return difference == 0;
}

class auth_token {
 public:
  /// Shorter ones are guessed, longer ones are another file.
  static constexpr std::size_t bytes_min = 16, bytes_max = 256;

  /// No token: everybody is let in.
  auth_token() = default;
  /// invalid_argument: its length or a character; the text shows neither.
  static expected<auth_token> from_text(std::string_view text);

  bool required() const { return size_ > 0; }
  /// Always compares bytes_max bytes.
  bool admits(std::string_view given) const;
  /// For a hello, and for nothing that a person reads.
  std::string reveal() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, bytes_max> bytes_{};
  std::size_t size_ = 0;
};

struct token_source {
  auth_token token;
  std::string warning;  ///< the file is open to more users than it should be; empty: it is not
};

/// The file's text without white space around it. Errors name the file and what to do: config_syntax when it
/// cannot be read, config_range when it holds no token.
expected<token_source> read_token_file(const std::string& path,
                                       std::string_view named = "/security/token_file");

}  // namespace handoff
