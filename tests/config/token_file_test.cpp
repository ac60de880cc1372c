#include "config/token_file.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace handoff {
namespace {

const std::string secret = "correct-horse-battery-staple";

/// A file that only its owner reads, gone at the end of the test.
class file {
 public:
  explicit file(const std::string& text, mode_t mode = 0600)
      : path_(std::filesystem::temp_directory_path() / fmt::format("handoff-token-{}", getpid())) {
    std::ofstream(path_, std::ios::binary) << text;
    REQUIRE(::chmod(path_.c_str(), mode) == 0);
  }
  ~file() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct refusal {
  errc code;
  std::string detail;
};

refusal refused(const std::string& path) {
  auto read = read_token_file(path);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().detail.rfind("/security/token_file: " + path + ": ", 0) == 0);
  return {read.error().code, read.error().detail};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// Bytes that count how often they are read.
struct counted_bytes {
  std::vector<std::uint8_t> bytes;
  mutable std::size_t reads = 0;
  std::size_t size() const { return bytes.size(); }
  std::uint8_t operator[](std::size_t i) const {
    ++reads;
    return bytes[i];
  }
};

}  // namespace

TEST_CASE("a token is the file's one word, whatever white space surrounds it") {
  for (const auto& text : {secret, secret + "\n", " \t" + secret + " \r\n\n"}) {
    const file f(text);
    auto read = read_token_file(f.path());
    REQUIRE_MESSAGE(read, (read ? "" : read.error().detail));
    CHECK(read->token.required());
    CHECK(read->token.reveal() == secret);
    CHECK(read->warning.empty());
  }
}

TEST_CASE("a file that holds no token is refused with its name, never with what stands in it") {
  CHECK(refused("no/such/file").code == errc::config_syntax);
  CHECK(refused("tests").code == errc::config_syntax);
  CHECK(contains(refused("/dev/null").detail, "no regular file"));
  const struct {
    std::string text, fragment;
  } cases[] = {
      {"", "it is empty"},
      {" \n\n", "it is empty"},
      {"swordfish", "16 to 256 characters, this one has 9"},
      {std::string(257, 's'), "this one has 257"},
      {std::string(1025, 's'), "larger than 1024 bytes"},
      {secret + "\n" + secret, "one word"},
      {secret + '\0' + secret, "one word"},
      {secret + "\xc3\xa9", "one word"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.fragment);
    const file f(c.text);
    auto r = refused(f.path());
    CHECK(r.code == errc::config_range);
    CHECK_MESSAGE(contains(r.detail, c.fragment), r.detail);
    for (const std::string shown : {"swordfish", "correct", "sss"}) CHECK_FALSE(contains(r.detail, shown));
  }
}

TEST_CASE("a file that other users can read or change is used, with a warning") {
  for (mode_t mode : {0604, 0602, 0620, 0666, 0644}) {
    const file f(secret, mode);
    auto read = read_token_file(f.path());
    REQUIRE(read);
    CHECK_MESSAGE(contains(read->warning, fmt::format("mode {:04o}", mode)), read->warning);
    CHECK(contains(read->warning, f.path()));
    CHECK_FALSE(contains(read->warning, secret));
  }
  for (mode_t mode : {0600, 0400, 0640}) CHECK(read_token_file(file(secret, mode).path())->warning.empty());
}

TEST_CASE("only the token itself is admitted, and anything where none is required") {
  const auto token = *auth_token::from_text(secret);
  CHECK(token.admits(secret));
  for (std::size_t i = 0; i < secret.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto near = secret;
      near[i] = static_cast<char>(near[i] ^ (1 << bit));
      CHECK_FALSE(token.admits(near));
    }
    CHECK_FALSE(token.admits(secret.substr(0, i)));
    CHECK_FALSE(token.admits(secret.substr(i + 1)));
  }
  const auto longest = std::string(auth_token::bytes_max, 's');
  CHECK_FALSE(token.admits(secret + '\0'));
  CHECK_FALSE(token.admits(secret + longest));
  CHECK(auth_token::from_text(longest)->admits(longest));
  CHECK_FALSE(auth_token::from_text(longest)->admits(longest + "s"));

  CHECK_FALSE(auth_token().required());
  CHECK(auth_token().reveal().empty());
  for (const auto& given : {std::string(), secret, longest + longest}) CHECK(auth_token().admits(given));
}

TEST_CASE("a comparison reads every byte once, wherever the two differ") {
  const counted_bytes token{std::vector<std::uint8_t>(auth_token::bytes_max, 7)};
  CHECK(same_bytes(token, token));
  for (std::size_t at = 0; at < auth_token::bytes_max; ++at) {
    counted_bytes given{token.bytes};
    given.bytes[at] ^= 0x80;
    token.reads = 0;
    CHECK_FALSE(same_bytes(token, given));
    CHECK(given.reads == auth_token::bytes_max);
    CHECK(token.reads == auth_token::bytes_max);
  }
}

}  // namespace handoff
