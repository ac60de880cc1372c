// Sequences of operations with the answers of a widely used system of the field (tests/golden/current), and
// the book in which our answers are compared: an answer is equal, or it differs at a place where ours is
// stricter on purpose and the place explains exactly this difference.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace handoff::testing {

using json = nlohmann::json;

struct sequence {
  std::size_t line = 0;
  json args, operations, answers;
};
/// All lines of tests/golden/current/NAME.jsonl.
std::vector<sequence> load_sequences(const std::string& name);

/// What the adapter knows of the room when an answer is compared.
struct moment {
  json operation, ours, theirs;
  std::map<std::string, json> marks;  ///< what happened in this life of the room
  bool marked(const std::string& name) const { return marks.count(name) != 0; }
};
struct stricter_place {
  std::string name;
  std::string why;
  std::function<bool(const moment&)> explains;
};

class comparison {
 public:
  comparison(std::string file, std::vector<stricter_place> places);
  void compare(const sequence& s, std::size_t at, const moment& m);
  /// Prints the counts; every difference was explained, and every place explained something.
  void conclude() const;

 private:
  std::string file_;
  std::vector<stricter_place> places_;
  std::map<std::string, std::uint64_t> differences_;
  std::uint64_t agree_ = 0, unexplained_ = 0;
};

}  // namespace handoff::testing
