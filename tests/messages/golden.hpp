// The checked-in bytes of every message: golden/messages.txt, two lines each: the fields in the order in
// which they travel, and the bytes of one message in hex. They pin the wire format: a difference means that
// older peers read something else. When fields were added at an end on purpose, write the file anew:
//
//   ninja -C build/release messages_golden && build/release/tests/messages/messages_golden write
#pragma once

#include "messages/wire.hpp"

#include <string>
#include <vector>

namespace handoff::test {

struct golden_message {
  std::string type;
  std::string fields;  ///< "key(room:8 attempt:4) runs[](first:4 count:4) label:text"
  wire::bytes bytes;
};

/// As the codec writes them now, in the order of message_list.
std::vector<golden_message> encode_golden();

std::string to_lines(const golden_message& message);

}  // namespace handoff::test
