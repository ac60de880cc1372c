#include "messages/compatibility.hpp"

#include <vector>

#include <doctest/doctest.h>

using namespace handoff;

namespace {

const compatibility_record base{"llama", "a1", "bf16", "", "hnd", "handoff/1", 1, "tag"};

// Records that differ from `base` in one field each, with the field's name and both texts.
struct difference {
  compatibility_record record;
  std::string text;
};

struct field_changer {
  using own_inspector = void;
  std::size_t index;
  std::string text;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    std::size_t i = 0;
    (void)((i++ == index ? (change(refs.name, refs.value), true) : false) || ...);
    return true;
  }
  void change(const std::string& name, std::string& x) {
    text = name + ": prefill has \"" + x + "\", decode has \"" + x + "-other\"";
    x += "-other";
  }
  void change(const std::string& name, std::uint32_t& x) {
    text = name + ": prefill has " + std::to_string(x) + ", decode has " + std::to_string(x + 1);
    ++x;
  }
};

std::vector<difference> differences() {
  std::vector<difference> all;
  for (std::size_t i = 0;; ++i) {
    field_changer changer{i, {}};
    auto record = base;
    inspect(changer, record);
    if (changer.text.empty()) return all;
    all.push_back({record, changer.text});
  }
}

}  // namespace

TEST_CASE("equal records may be served") {
  auto verdict = compare(base, base, {});
  CHECK_FALSE(verdict.refusal);
  CHECK(verdict.warnings.empty());
}

TEST_CASE("each differing field refuses, named with both values") {
  const auto all = differences();
  CHECK(all.size() == 8);
  for (const auto& d : all) {
    REQUIRE(d.record != base);
    auto verdict = compare(base, d.record, {});
    CHECK(verdict.refusal == error{errc::peer_incompatible, d.text, {}});
    CHECK(verdict.warnings.empty());
  }
}

TEST_CASE("every refusing field is named, in declared order") {
  auto other = base;
  other.model_revision = "b2";
  other.planner_version = 2;
  auto verdict = compare(base, other, {});
  CHECK(
      verdict.refusal.detail ==
      "model_revision: prefill has \"a1\", decode has \"b2\"; planner_version: prefill has 1, decode has 2");
}

TEST_CASE("a rule turns one field's refusal into a warning and no other's") {
  auto other = base;
  other.model_revision = "b2";
  other.kv_dtype = "fp8";
  auto verdict =
      compare(base, other, {{"model_revision", mismatch_action::warn}, {"model", mismatch_action::warn}});
  CHECK(verdict.warnings ==
        std::vector<std::string>{"model_revision: prefill has \"a1\", decode has \"b2\""});
  CHECK(verdict.refusal.detail == "kv_dtype: prefill has \"bf16\", decode has \"fp8\"");

  other.kv_dtype = base.kv_dtype;
  verdict = compare(base, other, {{"model_revision", mismatch_action::warn}});
  CHECK_FALSE(verdict.refusal);
  CHECK(verdict.warnings.size() == 1);

  verdict = compare(base, other, {{"model_revision", mismatch_action::refuse}});
  CHECK(verdict.refusal);
  CHECK(verdict.warnings.empty());
}
