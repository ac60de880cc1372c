// messages_golden write [FILE]   writes the checked-in bytes anew
// messages_golden corpus DIR     writes them as seeds for fuzz_decode: a byte that picks the type, the
// payload
#include "tests/messages/golden.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const auto messages = handoff::test::encode_golden();
  if (verb == "write" && argc <= 3) {
    std::ofstream out(argc == 3 ? argv[2] : HANDOFF_GOLDEN_FILE);
    for (const auto& m : messages) out << to_lines(m);
    return out.flush() ? 0 : 1;
  }
  if (verb == "corpus" && argc == 3) {
    std::filesystem::create_directories(argv[2]);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& m = messages[i];
      std::ofstream out(std::filesystem::path(argv[2]) / m.type, std::ios::binary);
      out.put(static_cast<char>(i));
      auto payload = std::span(m.bytes).subspan(handoff::wire::header_bytes);
      out.write(reinterpret_cast<const char*>(payload.data()), static_cast<std::streamsize>(payload.size()));
      if (!out.flush()) return 1;
    }
    return 0;
  }
  std::fputs("usage: messages_golden write [FILE] | corpus DIR\n", stderr);
  return 2;
}
