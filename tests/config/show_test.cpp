#include "config/show.hpp"

#include "config/keys.hpp"
#include "config/load.hpp"

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace handoff {
namespace {

/// Tests run in the root of the source tree.
std::string read(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path << " is missing");
  return {std::istreambuf_iterator<char>(file), {}};
}

engine_config sample_values() {
  engine_config config;
  config.engine.name = "engine";
  config.model.name = "llama-3.1-8b";
  return config;
}

/// Another legal value for a key, whatever its kind.
void change(const key_spec& key, engine_config& config, std::mt19937_64& random) {
  auto number = [&] {
    return (key.min + random() % (key.max - key.min + 1)) / key.multiple_of * key.multiple_of;
  };
  if (const auto* m32 = std::get_if<uint32_member>(&key.member))
    (*m32)(config) = static_cast<std::uint32_t>(number());
  if (const auto* m64 = std::get_if<uint64_member>(&key.member)) (*m64)(config) = number();
  if (const auto* flag = std::get_if<bool_member>(&key.member)) (*flag)(config) = random() % 2 != 0;
  if (const auto* rules = std::get_if<rules_member>(&key.member))
    (*rules)(config) = {{"kv_dtype", mismatch_action::refuse}, {"model_revision", mismatch_action::warn}};
  if (const auto* probabilities = std::get_if<probabilities_member>(&key.member))
    for (auto& p : (*probabilities)(config)) p = static_cast<double>(random() % 1025) / 1024;
  const auto* text = std::get_if<text_member>(&key.member);
  if (text && key.form == text_form::any) (*text)(config) = "\u00e9 \"quoted\" " + std::to_string(random());
  if (text && key.form == text_form::choice) (*text)(config) = key.choices[random() % key.choices.size()];
  if (text && key.form == text_form::host) (*text)(config) = "node" + std::to_string(random() % 100);
}

}  // namespace

TEST_CASE("the sample file loads and holds every key with its default") {
  auto loaded = load_file("config/samples/engine.json");
  REQUIRE_MESSAGE(loaded.has_value(), loaded.error().detail);
  CHECK(show(*loaded) == show(sample_values()));
  auto sample = nlohmann::json::parse(read("config/samples/engine.json"));
  std::size_t keys = 0;
  for (const auto& section : sample) keys += section.size();
  CHECK(keys == all_keys().size());
  for (const auto& key : all_keys()) {
    INFO("key: ", pointer_of(key));
    CHECK(sample.contains(nlohmann::json::json_pointer(pointer_of(key))));
  }
}

TEST_CASE("the reference table of the folder's README is the table of keys") {
  auto readme = read("config/README.md");
  CHECK_MESSAGE(readme.find(show_reference()) != std::string::npos, "config/README.md should hold:\n"
                                                                        << show_reference());
}

TEST_CASE("what show prints is read back to the same values") {
  CHECK(show(*load_text(show(sample_values()), "shown")) == show(sample_values()));
  const std::uint64_t seed = 20240607;
  MESSAGE("seed " << seed);
  std::mt19937_64 random(seed);
  std::size_t accepted = 0;
  for (int round = 0; round < 200; ++round) {
    auto config = sample_values();
    for (const auto& key : all_keys())
      if (random() % 8 == 0) change(key, config, random);
    if (!check_config(config, "random")) continue;  // contradicting values
    auto loaded = load_text(show(config), "shown");
    REQUIRE_MESSAGE(loaded.has_value(), loaded.error().detail);
    CHECK(show(*loaded) == show(config));
    ++accepted;
  }
  MESSAGE(accepted << " random configurations without contradictions");
  CHECK(accepted > 10);
}

TEST_CASE("each key of the file reaches its own member") {
  std::mt19937_64 random(7);
  const auto before = nlohmann::json::parse(show(sample_values()));
  for (const auto& key : all_keys()) {
    INFO("key: ", pointer_of(key));
    auto config = sample_values();
    const auto* text = std::get_if<text_member>(&key.member);
    if (text) {
      (*text)(config) = "changed";
    } else if (const auto* flag = std::get_if<bool_member>(&key.member)) {
      (*flag)(config) = !(*flag)(config);
    } else {
      change(key, config, random);
    }
    auto after = nlohmann::json::parse(show(config));
    auto difference = nlohmann::json::diff(before, after);
    REQUIRE_FALSE(difference.empty());
    for (const auto& step : difference) CHECK(step["path"].get<std::string>().rfind(pointer_of(key), 0) == 0);
  }
}

}  // namespace handoff
