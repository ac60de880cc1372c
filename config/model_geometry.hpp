// Shapes of public models' KV caches, as far as a handoff needs them. The files of config/models/ are built
// into the library, so that a binary finds them without a path.
#pragma once

#include "messages/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace handoff {

enum class geometry_kind : std::uint8_t {
  gqa = 0,  ///< keys and values of kv_heads heads per layer
  mla = 1,  ///< one compressed vector (latent and rope part) per layer
};
std::string_view to_string(geometry_kind kind);

struct model_geometry {
  std::string name;  ///< lower case, as looked up: "llama-3.1-8b"
  geometry_kind kind = geometry_kind::gqa;
  std::uint32_t layers = 0;
  std::uint32_t kv_heads = 0, head_dim = 0;    ///< gqa
  std::uint32_t latent_dim = 0, rope_dim = 0;  ///< mla
  std::string dtype;                           ///< "bf16", "fp16", "fp32" or "fp8"
  std::uint32_t element_bytes = 0;             ///< of dtype
  std::uint32_t sliding_window_tokens = 0;     ///< 0: every layer attends to everything
  std::vector<std::uint32_t> sliding_layers;   ///< ascending; these need only the window's last tokens
};

/// Buffers per layer: key and value, or one latent.
std::uint32_t buffers_per_layer(const model_geometry& geometry);
/// Bytes of one token in one buffer.
std::uint64_t buffer_bytes_per_token(const model_geometry& geometry);
/// Bytes of one token in all layers: 131,072 for Llama-3.1-8B in bf16.
std::uint64_t bytes_per_token(const model_geometry& geometry);

/// Names of the models that are built in, sorted.
std::vector<std::string> geometry_names();
/// Case is ignored; an unknown name is answered with the known ones (invalid_argument).
expected<model_geometry> find_geometry(std::string_view name);
/// Strict, with errors like those of load_text; `origin` names the file in them.
expected<model_geometry> parse_geometry(std::string_view text, const std::string& origin);

}  // namespace handoff
