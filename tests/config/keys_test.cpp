#include "config/keys.hpp"

#include "messages/compatibility.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace handoff {
namespace {

/// Collects the names of a struct's fields.
struct name_collector {
  using own_inspector = void;
  std::vector<std::string> names;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (names.emplace_back(refs.name), ...);
    return true;
  }
};

}  // namespace

TEST_CASE("keys are unique, and keys of one section are neighbours") {
  std::set<std::string> pointers, closed;
  std::string_view section;
  for (const auto& key : all_keys()) {
    INFO("key: ", pointer_of(key));
    CHECK(pointers.insert(pointer_of(key)).second);
    if (key.section != section) {
      CHECK(closed.insert(std::string(key.section)).second);
      section = key.section;
    }
    CHECK(key.sentence.ends_with('.'));
  }
}

TEST_CASE("numbers have a unit, a range that fits their member, and a default inside") {
  engine_config config;
  for (const auto& key : all_keys()) {
    const auto* m32 = std::get_if<uint32_member>(&key.member);
    const auto* m64 = std::get_if<uint64_member>(&key.member);
    if (!m32 && !m64) continue;
    INFO("key: ", pointer_of(key));
    std::uint64_t value = m32 ? (*m32)(config) : (*m64)(config);
    CHECK_FALSE(key.unit.empty());
    CHECK(key.min < key.max);
    if (m32) CHECK(key.max <= std::numeric_limits<std::uint32_t>::max());
    CHECK(value >= key.min);
    CHECK(value <= key.max);
    CHECK(value % key.multiple_of == 0);
    CHECK(key.max % key.multiple_of == 0);
  }
}

TEST_CASE("exactly the engine's and the model's name are required") {
  std::vector<std::string> required;
  for (const auto& key : all_keys())
    if (is_required(key)) required.push_back(pointer_of(key));
  CHECK(required == std::vector<std::string>{"/engine/name", "/model/name"});
}

TEST_CASE("fields that may be tolerated are fields of the compatibility record") {
  name_collector collector;
  compatibility_record record;
  inspect(collector, record);
  for (auto field : tolerable_fields()) {
    INFO("field: ", field);
    CHECK(std::count(collector.names.begin(), collector.names.end(), field) == 1);
  }
}

}  // namespace handoff
