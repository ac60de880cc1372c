#include "config/model_geometry.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace handoff {
namespace {

model_geometry find(std::string_view name) {
  auto geometry = find_geometry(name);
  REQUIRE_MESSAGE(geometry.has_value(), geometry.error().detail);
  return *geometry;
}

}  // namespace

TEST_CASE("bytes per token of the built-in models are those worked out by hand") {
  const struct {
    std::string_view name;
    std::uint64_t bytes;
  } cases[] = {
      {"llama-3.1-8b", 131'072},   // 32 layers x K and V x 8 heads x 128 x 2 bytes
      {"llama-3.1-70b", 327'680},  // 80 x 2 x 8 x 128 x 2
      {"qwen3-32b", 262'144},      // 64 x 2 x 8 x 128 x 2
      {"deepseek-v3", 70'272},     // 61 x (512 + 64) x 2
      {"gpt-oss-120b", 73'728},    // 36 x 2 x 8 x 64 x 2
      {"smollm2-135m", 23'040},    // 30 x 2 x 3 x 64 x 2
  };
  CHECK(std::size(cases) == geometry_names().size());
  for (const auto& c : cases) {
    INFO("model: ", c.name);
    CHECK(bytes_per_token(find(c.name)) == c.bytes);
  }
}

TEST_CASE("a model's name is looked up whatever its case") {
  CHECK(find("Llama-3.1-8B").name == "llama-3.1-8b");
  CHECK(find("SmolLM2-135M").name == "smollm2-135m");
}

TEST_CASE("every built-in file is valid, is called like its model, and is listed in order") {
  auto names = geometry_names();
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const auto& name : names) CHECK(find(name).name == name);
}

TEST_CASE("an unknown model is answered with the known ones") {
  for (const auto* name : {"", "llama", "llama-3.1-8b ", "../llama-3.1-8b", "deepseek-v3.json"}) {
    auto geometry = find_geometry(name);
    REQUIRE_FALSE(geometry.has_value());
    CHECK(geometry.error().code == errc::invalid_argument);
    CHECK(geometry.error().detail.find(std::string("'") + name + "'") != std::string::npos);
    for (const auto& known : geometry_names())
      CHECK(geometry.error().detail.find(known) != std::string::npos);
  }
}

TEST_CASE("gpt-oss-120b alternates sliding-window layers from the first") {
  auto geometry = find("gpt-oss-120b");
  CHECK(geometry.sliding_window_tokens == 128);
  REQUIRE(geometry.sliding_layers.size() == 18);
  for (std::uint32_t i = 0; i < 18; ++i) CHECK(geometry.sliding_layers[i] == 2 * i);
  CHECK(find("llama-3.1-8b").sliding_window_tokens == 0);
  CHECK(find("llama-3.1-8b").sliding_layers.empty());
}

TEST_CASE("a latent model has one buffer per layer, others have two") {
  CHECK(buffers_per_layer(find("deepseek-v3")) == 1);
  CHECK(buffer_bytes_per_token(find("deepseek-v3")) == 1'152);
  CHECK(buffers_per_layer(find("llama-3.1-8b")) == 2);
  CHECK(buffer_bytes_per_token(find("llama-3.1-8b")) == 2'048);
}

TEST_CASE("malformed geometry files are refused by key") {
  const std::string good = R"("name": "x", "layers": 4, "dtype": "bf16")";
  const std::string gqa = R"(, "kind": "gqa", "kv_heads": 2, "head_dim": 64)";
  CHECK(parse_geometry("{" + good + gqa + "}", "x.json").has_value());
  const struct {
    std::string text;
    errc code;
    std::string fragment;
  } cases[] = {
      {"", errc::config_syntax, "x.json:1:1: not JSON"},
      {"[]", errc::config_type, "expected an object"},
      {"{" + good + gqa + R"(, "kv_head": 2})", errc::config_key,
       "/kv_head: unknown key; did you mean kv_heads?"},
      {"{" + good + gqa + R"(, "latent_dim": 2})", errc::config_key, "/latent_dim: unknown key"},
      {"{" + good + gqa + R"(, "layers": 5})", errc::config_key, "/layers: duplicate key"},
      {"{" + good + R"(, "kind": "gqa", "kv_heads": 2})", errc::config_key, "/head_dim: missing"},
      {"{" + good + R"(, "kind": "mla", "latent_dim": 512})", errc::config_key, "/rope_dim: missing"},
      {"{" + good + R"(, "kind": "mha"})", errc::config_range, "/kind: \"mha\""},
      {"{" + good + R"(, "kind": 3})", errc::config_type, "/kind: 3"},
      {"{" + good + R"(, "kind": "gqa", "kv_heads": 0, "head_dim": 64})", errc::config_range, "/kv_heads: 0"},
      {"{" + good + R"(, "kind": "gqa", "kv_heads": -2, "head_dim": 64})", errc::config_range,
       "/kv_heads: -2"},
      {"{" + good + R"(, "kind": "gqa", "kv_heads": 2.5, "head_dim": 64})", errc::config_type,
       "/kv_heads: 2.5"},
      {R"({"name": "x", "layers": 4000000000, "dtype": "bf16")" + gqa + "}", errc::config_range, "/layers"},
      {R"({"name": "x", "layers": 4, "dtype": "int7")" + gqa + "}", errc::config_range, "/dtype: \"int7\""},
      {R"({"layers": 4, "dtype": "bf16")" + gqa + "}", errc::config_key, "/name: missing"},
      {"{" + good + gqa + R"(, "sliding_window": 128})", errc::config_type, "/sliding_window: 128"},
      {"{" + good + gqa + R"(, "sliding_window": {"tokens": 128}})", errc::config_key,
       "/sliding_window/layers: missing"},
      {"{" + good + gqa + R"(, "sliding_window": {"tokens": 128, "layers": [0, 4]}})", errc::config_range,
       "/sliding_window/layers/1: 4"},
      {"{" + good + gqa + R"(, "sliding_window": {"tokens": 128, "layers": [1, 1]}})", errc::config_range,
       "/sliding_window/layers/1: 1"},
      {"{" + good + gqa + R"(, "sliding_window": {"tokens": 128, "layers": ["0"]}})", errc::config_range,
       "/sliding_window/layers/0"},
  };
  for (const auto& c : cases) {
    INFO("text: ", c.text);
    auto geometry = parse_geometry(c.text, "x.json");
    REQUIRE_FALSE(geometry.has_value());
    INFO("detail: ", geometry.error().detail);
    CHECK(to_string(geometry.error().code) == to_string(c.code));
    CHECK(geometry.error().detail.find(c.fragment) != std::string::npos);
  }
}

}  // namespace handoff
