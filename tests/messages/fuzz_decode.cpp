// Arbitrary bytes as a message: nothing may crash, and what decodes must survive being sent on.
// First byte: which message; the others: its payload, or a whole message for the header's checks.
#include "tests/messages/message_list.hpp"

#include <cstdlib>

using namespace handoff;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class T>
void decode_and_send_on(wire::byte_span payload) {
  auto got = wire::decode_payload<T>(payload);
  if (!got) return require(!got.error().detail.empty());
  auto bytes = wire::encode(*got);
  auto header = wire::verify(bytes, bytes.size());
  require(header && header->type == T::type);
  auto again = wire::decode_payload<T>(wire::byte_span(bytes).subspan(wire::header_bytes));
  require(again && *again == *got);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  auto input = std::as_bytes(std::span(data, size)).subspan(1);
  if (auto header = wire::verify(input, limits::control_message_bytes))
    require(header->length == input.size() - wire::header_bytes);
  std::size_t index = 0;
  test::for_each_message([&](auto message) {
    if (index++ == data[0] % std::tuple_size_v<test::message_list>)
      decode_and_send_on<decltype(message)>(input);
  });
  return 0;
}
