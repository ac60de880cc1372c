#include "config/model_geometry.hpp"

#include "config/builtin_models.hpp"
#include "config/json_reader.hpp"
#include "config/problems.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace handoff {
namespace {

constexpr std::uint32_t layers_max = 1'024, heads_max = 4'096, dim_max = 65'536, window_max = 16'777'216;

struct dtype_size {
  std::string_view name;
  std::uint32_t bytes;
};
constexpr dtype_size dtypes[] = {{"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"fp8", 1}};

/// Takes the fields of one JSON object and remembers which were taken: the others are unknown keys.
class object_reader {
 public:
  object_reader(const json_value& object, std::string pointer, problems& found)
      : object_(object), pointer_(std::move(pointer)), found_(found) {}

  const json_value* take(std::string_view name, json_kind kind, std::string_view wanted) {
    names_.push_back(name);
    const auto* value = object_.find(name);
    auto pointer = child_pointer(pointer_, name);
    if (!value)
      found_.add(errc::config_key, pointer, fmt::format("missing: expected {}", wanted));
    else if (value->kind != kind)
      found_.add(value->kind == json_kind::negative ? errc::config_range : errc::config_type, pointer,
                 fmt::format("{} is wrong: expected {}", display(*value), wanted));
    else
      return value;
    return nullptr;
  }

  std::string text(std::string_view name) {
    const auto* value = take(name, json_kind::text, "a string");
    return value ? value->text : "";
  }

  std::uint32_t number(std::string_view name, std::uint32_t max) {
    auto wanted = fmt::format("an integer, 1..{}", max);
    const auto* value = take(name, json_kind::natural, wanted);
    if (value && value->natural >= 1 && value->natural <= max)
      return static_cast<std::uint32_t>(value->natural);
    if (value)
      found_.add(errc::config_range, child_pointer(pointer_, name),
                 fmt::format("{} is out of range: expected {}", display(*value), wanted));
    return 0;
  }

  bool has(std::string_view name) const { return object_.find(name) != nullptr; }

  void refuse_others() const {
    for (const auto& [key, value] : object_.members) {
      if (std::find(names_.begin(), names_.end(), key) != names_.end()) continue;
      auto near = closest(key, names_);
      auto hint = near.empty() ? "" : fmt::format("; did you mean {}?", near);
      found_.add(errc::config_key, child_pointer(pointer_, key), "unknown key" + hint);
    }
  }

 private:
  const json_value& object_;
  std::string pointer_;
  problems& found_;
  std::vector<std::string_view> names_;
};

void read_sliding_window(const json_value& object, model_geometry& geometry, problems& found) {
  object_reader fields(object, "/sliding_window", found);
  geometry.sliding_window_tokens = fields.number("tokens", window_max);
  const auto* layers = fields.take("layers", json_kind::list, "a list of layers");
  fields.refuse_others();
  if (!layers) return;
  for (const auto& layer : layers->items) {
    bool ascending = layer.kind == json_kind::natural && layer.natural < geometry.layers &&
                     (geometry.sliding_layers.empty() || layer.natural > geometry.sliding_layers.back());
    if (!ascending) {
      found.add(
          errc::config_range, fmt::format("/sliding_window/layers/{}", geometry.sliding_layers.size()),
          fmt::format("{} is wrong: expected ascending layers below {}", display(layer), geometry.layers));
      return;
    }
    geometry.sliding_layers.push_back(static_cast<std::uint32_t>(layer.natural));
  }
}

void read_heads(object_reader& fields, model_geometry& geometry, problems& found) {
  auto kind = fields.text("kind");
  if (kind == "gqa") {
    geometry.kv_heads = fields.number("kv_heads", heads_max);
    geometry.head_dim = fields.number("head_dim", dim_max);
  } else if (kind == "mla") {
    geometry.kind = geometry_kind::mla;
    geometry.latent_dim = fields.number("latent_dim", dim_max);
    geometry.rope_dim = fields.number("rope_dim", dim_max);
  } else if (!found.has("/kind")) {
    found.add(errc::config_range, "/kind", fmt::format("\"{}\" is not allowed: expected gqa or mla", kind));
  }
}

void read_dtype(object_reader& fields, model_geometry& geometry, problems& found) {
  geometry.dtype = fields.text("dtype");
  for (const auto& dtype : dtypes)
    if (dtype.name == geometry.dtype) geometry.element_bytes = dtype.bytes;
  if (geometry.element_bytes == 0 && !found.has("/dtype"))
    found.add(errc::config_range, "/dtype",
              fmt::format("\"{}\" is not allowed: expected bf16, fp16, fp32 or fp8", geometry.dtype));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace

std::string_view to_string(geometry_kind kind) {
  return kind == geometry_kind::gqa ? "gqa" : "mla";
}

std::uint32_t buffers_per_layer(const model_geometry& geometry) {
  return geometry.kind == geometry_kind::mla ? 1 : 2;
}

std::uint64_t buffer_bytes_per_token(const model_geometry& geometry) {
  auto elements = geometry.kind == geometry_kind::mla ? std::uint64_t{geometry.latent_dim} + geometry.rope_dim
                                                      : std::uint64_t{geometry.kv_heads} * geometry.head_dim;
  return elements * geometry.element_bytes;
}

std::uint64_t bytes_per_token(const model_geometry& geometry) {
  return buffer_bytes_per_token(geometry) * buffers_per_layer(geometry) * geometry.layers;
}

std::vector<std::string> geometry_names() {
  std::vector<std::string> names;
  for (const auto& model : builtin_models()) names.emplace_back(model.name);
  return names;
}

expected<model_geometry> find_geometry(std::string_view name) {
  auto wanted = lower(name);
  for (const auto& model : builtin_models())
    if (model.name == wanted) return parse_geometry(model.json, fmt::format("built-in {}.json", model.name));
  return fail(errc::invalid_argument, fmt::format("no model geometry is called '{}'; known are {}", name,
                                                  fmt::join(geometry_names(), ", ")));
}

expected<model_geometry> parse_geometry(std::string_view text, const std::string& origin) {
  auto root = read_json(text, origin);
  if (!root) return unexpected(root.error());
  if (root->kind != json_kind::object)
    return fail(errc::config_type,
                fmt::format("{}: {} is wrong: expected an object", origin, display(*root)));
  model_geometry geometry;
  problems found;
  object_reader fields(*root, "", found);
  geometry.name = fields.text("name");
  geometry.layers = fields.number("layers", layers_max);
  read_heads(fields, geometry, found);
  read_dtype(fields, geometry, found);
  if (fields.has("sliding_window"))
    if (const auto* window = fields.take("sliding_window", json_kind::object, "an object"))
      read_sliding_window(*window, geometry, found);
  fields.refuse_others();
  if (!found.empty()) return unexpected(found.result(origin).error());
  return geometry;
}

}  // namespace handoff
