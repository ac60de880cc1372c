// Pure planning: two ranks' published layouts and page lists -> blocks. Exact unsigned 64-bit arithmetic,
// overflow is an error. This planner serves pairs of equal layouts (same ranks, page size and buffers; pool
// sizes and page numbers may differ) and refuses every other pair by name, at connect and on both sides
// alike.
#pragma once

#include "messages/error.hpp"
#include "messages/layout.hpp"
#include "messages/room_messages.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <vector>

namespace handoff::layout {

/// Tokens [first_token, last_token) of layers [first_layer, last_layer).
struct range {
  std::uint64_t first_token = 0, last_token = 0;
  std::uint32_t first_layer = 0, last_layer = UINT32_MAX;
};

/// What a plan moves, independent of how a room is cut into chunks: digests and bytes of chunks add up to the
/// room's.
struct totals {
  std::uint64_t bytes = 0;
  /// Sum modulo 2^64 of one hash per (destination item, layer, kind, first token, bytes): both sides can
  /// compute it, the order and the cutting into chunks do not matter.
  std::uint64_t digest = 0;
  std::vector<component_coverage> coverage;
  friend bool operator==(const totals&, const totals&) = default;
};

struct chunk_plan {
  std::vector<transport::block> blocks;  ///< neighbours coalesced where source and destination both continue
  totals sum;
};

/// May these two ranks serve each other? layout_refused names the first difference with both values.
error judge_pair(const layout_descriptor& source, const layout_descriptor& sink);

/// Blocks of one chunk. Tokens below a component's `prefix_tokens` (in `sink_pages`) are left out. A range
/// that does not end the room (`room_tokens`) must end on a page border. Errors: invalid_argument,
/// transport_region, coverage_gap (pages missing on either side).
expected<chunk_plan> plan_chunk(const layout_descriptor& source, const layout_descriptor& sink,
                                const std::vector<component_pages>& source_pages,
                                const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens,
                                range what);

/// The sink's own view of the whole room: what must arrive in its pages.
expected<totals> plan_totals(const layout_descriptor& source, const layout_descriptor& sink,
                             const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens);

/// Pages within their component, no page twice, aligned first token and prefix; for checking a peer's
/// publish.
error check_pages(const layout_descriptor& layout, const std::vector<component_pages>& pages,
                  std::uint64_t room_tokens);

}  // namespace handoff::layout
