// The byte-pattern oracle: every byte of a page is a function of (content of the page, layer, kind, token in
// the page, offset in the token). The content of a room's page is a hash chain over the pages before it,
// begun by (run's seed, room, attempt). Poison is content too: of a page of a pool, not of a room. Because
// the function can be inverted, bytes that are wrong can tell whose they are. Pure.
#pragma once

#include "messages/ids.hpp"
#include "messages/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace handoff::replay {

using content_id = strong_id<struct content_tag, std::uint64_t>;

/// Invertible mixing of 64 bits (Stafford's variant 13).
std::uint64_t mix(std::uint64_t x);
std::uint64_t unmix(std::uint64_t x);

/// Contents of a room's pages, in token order.
std::vector<content_id> room_contents(std::uint64_t seed, room_key key, std::uint64_t pages);

/// Which pool's memory nobody has written.
enum class pool_side : std::uint8_t { source, sink };
content_id poison_content(std::uint64_t seed, pool_side side, page_id page);

/// One item (a page of one buffer): what its bytes are made of.
struct item_key {
  content_id content;
  std::uint32_t layer = 0;
  buffer_kind kind = buffer_kind::key;
  friend bool operator==(const item_key&, const item_key&) = default;
};

/// Bytes of `memory` are the item's tokens from `first_token` on, `token_bytes` each.
/// @pre token_bytes is a multiple of 8, memory.size() of token_bytes
void fill(std::span<std::byte> memory, const item_key& key, std::uint64_t token_bytes,
          std::uint64_t first_token = 0);

/// Bytes of `memory` that are not what `fill` would have written, and the first of them.
struct difference {
  std::uint64_t wrong_bytes = 0;
  std::uint64_t first = 0;  ///< offset in memory
  std::byte expected{}, got{};
  std::uint64_t got_word = 0;  ///< the 8 bytes around `first`
};
std::optional<difference> verify(std::span<const std::byte> memory, const item_key& key,
                                 std::uint64_t token_bytes, std::uint64_t first_token = 0);

/// Who wrote these bytes? Filled with all contents of a run once something is wrong.
class content_index {
 public:
  struct owner {
    std::optional<room_id> room;  ///< none: poison
    pool_side side = pool_side::sink;
    std::uint64_t page = 0;  ///< in the room, or in the pool
  };
  struct found {
    owner who;
    std::uint32_t layer = 0;
    buffer_kind kind = buffer_kind::key;
    std::uint32_t token = 0;  ///< in the page
  };

  void add_room(std::uint64_t seed, room_key key, std::uint64_t pages);
  void add_poison(std::uint64_t seed, pool_side side, std::uint64_t pages);

  /// Tries every (layer, kind) of `buffers` and every token of a page at the word's offset in its token.
  std::optional<found> find(std::uint64_t word, std::uint64_t offset_in_token,
                            std::span<const buffer_layout> buffers) const;

 private:
  std::unordered_map<std::uint64_t, owner> owners_;
};

}  // namespace handoff::replay
