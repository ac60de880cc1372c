// What must be equal on both sides before a byte moves. What may differ (page size, layers, ranks) stands in
// the layout descriptor instead.
#pragma once

#include "messages/error.hpp"
#include "messages/inspect.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace handoff {

struct compatibility_record {
  std::string model;
  std::string model_revision;
  std::string kv_dtype;
  std::string draft_model;            ///< empty: no draft
  std::string kernel_packing;         ///< how the engine lays K and V inside a page
  std::string metadata_schema;        ///< "handoff/1", "none" or "external/<name>"
  std::uint32_t planner_version = 1;  ///< order of blocks in a plan, part of every plan hash
  std::string embedder_tag;           ///< opaque to us
  friend bool operator==(const compatibility_record&, const compatibility_record&) = default;
};

template <class F>
auto inspect(F& f, compatibility_record& x) {
  return fields(f, "compatibility_record", field("model", x.model), field("model_revision", x.model_revision),
                field("kv_dtype", x.kv_dtype), field("draft_model", x.draft_model),
                field("kernel_packing", x.kernel_packing), field("metadata_schema", x.metadata_schema),
                field("planner_version", x.planner_version), field("embedder_tag", x.embedder_tag));
}

/// What a differing field does, by field name; fields that are not listed refuse.
enum class mismatch_action : std::uint8_t { refuse, warn };
struct mismatch_rule {
  std::string field;
  mismatch_action action = mismatch_action::refuse;
};

struct compatibility_verdict {
  error refusal;  ///< ok when the pair may be served; names every refusing field, both values
  std::vector<std::string> warnings;  ///< one text per tolerated difference
};

/// Compares whole records. The text is the same on both sides: values are named by role, prefill's first.
compatibility_verdict compare(const compatibility_record& prefill, const compatibility_record& decode,
                              const std::vector<mismatch_rule>& rules);

}  // namespace handoff
