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
  /// Sum modulo 2^64 of one hash per (component, buffer, destination item, layer, kind, first token, bytes):
  /// both sides can compute it, the order and the cutting into chunks do not matter.
  std::uint64_t digest = 0;
  std::vector<component_coverage> coverage;  ///< by component; without those that had nothing to move
  friend bool operator==(const totals&, const totals&) = default;
};

/// Adds the totals of one more chunk of the same room.
void add(totals& sum, const totals& chunk);

struct chunk_plan {
  std::vector<transport::block> blocks;  ///< neighbours coalesced where source and destination both continue
  totals sum;
};

/// May these two ranks serve each other? layout_refused names the first difference with both values.
error judge_pair(const layout_descriptor& source, const layout_descriptor& sink);

/// Where the sink's demand on a component begins: before its first page and below its prefix nothing is owed.
std::uint64_t owed_from(const component_pages& sink, std::uint64_t room_tokens);

/// A chunk's range: ordered, inside of the room, and its ends on page borders of every KV component, except
/// that it may end with the room. invalid_argument names the border.
error check_range(const layout_descriptor& layout, range what, std::uint64_t room_tokens);

/// Blocks of one chunk, by component, buffer and token. Tokens that the sink is not owed are left out; of a
/// last page that is not full only its tokens move, where they are contiguous, else the whole item. Errors:
/// invalid_argument, transport_region, coverage_gap (pages missing on either side).
expected<chunk_plan> plan_chunk(const layout_descriptor& source, const layout_descriptor& sink,
                                const std::vector<component_pages>& source_pages,
                                const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens,
                                range what);

/// The sink's own view of the whole room: what must arrive in its pages.
expected<totals> plan_totals(const layout_descriptor& source, const layout_descriptor& sink,
                             const std::vector<component_pages>& sink_pages, std::uint64_t room_tokens);

/// Every KV component listed once, pages within it, none twice, enough of them for the room, first token and
/// prefix on page borders (a prefix may also be the whole room). For checking an engine's lists and a peer's
/// publish: transport_region (a page that does not exist), coverage_gap (too few), invalid_argument.
error check_pages(const layout_descriptor& layout, const std::vector<component_pages>& pages,
                  std::uint64_t room_tokens);

}  // namespace handoff::layout
