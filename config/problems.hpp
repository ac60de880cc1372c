// The errors of one file, collected so that a person mends them all at once.
#pragma once

#include "messages/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace handoff {

struct problem {
  errc code = errc::ok;
  std::string pointer;  ///< "/section/key"; empty: the file as a whole
  std::string text;     ///< the value, what was expected, what to do
};

class problems {
 public:
  void add(errc code, std::string pointer, std::string text);
  bool empty() const { return list_.empty(); }
  bool has(std::string_view pointer) const;

  /// The first problem's code; one line "origin: pointer: text" each, at most defaults::errors_reported.
  expected<void> result(const std::string& origin) const;

 private:
  std::vector<problem> list_;
};

/// The candidate that `word` is probably a mistyped form of; empty if none is close.
std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace handoff
