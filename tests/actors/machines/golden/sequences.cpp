#include "tests/actors/machines/golden/sequences.hpp"

#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff::testing {

std::vector<sequence> load_sequences(const std::string& name) {
  const auto path = std::string(HANDOFF_GOLDEN_CURRENT) + "/" + name + ".jsonl";
  std::ifstream in(path);
  REQUIRE_MESSAGE(in, "cannot read ", path);
  std::vector<sequence> out;
  for (std::string line; std::getline(in, line);) {
    auto parsed = json::parse(line);
    sequence s{out.size() + 1, parsed["args"], parsed["args"]["operations"], parsed["result"]};
    REQUIRE(s.operations.size() == s.answers.size());
    out.push_back(std::move(s));
  }
  REQUIRE(!out.empty());
  return out;
}

comparison::comparison(std::string file, std::vector<stricter_place> places)
    : file_(std::move(file)), places_(std::move(places)) {}

void comparison::compare(const sequence& s, std::size_t at, const moment& m) {
  if (m.ours == m.theirs) {
    ++agree_;
    return;
  }
  for (const auto& p : places_)
    if (p.explains(m)) {
      ++differences_[p.name];
      return;
    }
  ++unexplained_;
  json marks = m.marks;
  if (unexplained_ <= 5)
    FAIL_CHECK(file_, " line ", s.line, ", operation ", at, " ", m.operation.dump(), ": ours ", m.ours.dump(),
               ", theirs ", m.theirs.dump(), ", and no place explains it; known of the room: ", marks.dump(),
               "; all: ", s.operations.dump());
}

void comparison::conclude() const {
  std::uint64_t differ = unexplained_;
  std::string report;
  for (const auto& p : places_) {
    auto count = differences_.find(p.name);
    CHECK_MESSAGE(count != differences_.end(), "no answer differs because of '", p.name, "'");
    if (count == differences_.end()) continue;
    differ += count->second;
    report += fmt::format("\n  {:>5} {}: {}", count->second, p.name, p.why);
  }
  MESSAGE(file_, ": ", agree_, " of ", agree_ + differ, " answers agree, ", differ, " differ:", report);
  CHECK(unexplained_ == 0);
  CHECK(agree_ > 0);
}

}  // namespace handoff::testing
