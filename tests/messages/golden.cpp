#include "tests/messages/golden.hpp"

#include "tests/messages/filler.hpp"
#include "tests/messages/message_list.hpp"

#include <fmt/format.h>

namespace handoff::test {

std::vector<golden_message> encode_golden() {
  std::vector<golden_message> all;
  for_each_message([&](auto message) {
    using T = decltype(message);
    wire::header h;
    h.credits = 3;
    h.session.value = 7;
    h.sequence = 1000 + all.size();
    all.push_back({std::string(to_string(T::type)), wire::encode(counted_message<T>(), h)});
  });
  return all;
}

std::string to_line(const golden_message& message) {
  auto line = message.type + ' ';
  for (auto b : message.bytes) line += fmt::format("{:02x}", static_cast<unsigned>(b));
  return line;
}

}  // namespace handoff::test
