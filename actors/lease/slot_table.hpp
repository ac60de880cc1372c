// Which room holds which metadata slot. Pure.
#pragma once

#include "messages/error.hpp"
#include "messages/ids.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace handoff {

class slot_table {
 public:
  explicit slot_table(std::uint32_t count);

  /// limit_exceeded when all are taken. The slot that has been free for longest comes first, so that what a
  /// late writer could still hit is not in use again at once.
  expected<slot_id> take(room_key owner);
  /// `internal`, and nothing changed: the slot is free already or another room's.
  error give_back(slot_id slot, room_key owner);
  /// The room adopted an attempt.
  error rekey(slot_id slot, room_key from, room_key to);

  std::optional<room_key> owner(slot_id slot) const;
  /// How often the slot was taken.
  std::uint64_t generation(slot_id slot) const;
  std::uint32_t used() const { return used_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  struct entry {
    std::optional<room_key> owner;
    std::uint64_t generation = 0;
    std::uint32_t next = 0;  ///< in the list of free slots
  };
  error check_owner(slot_id slot, room_key owner) const;

  std::vector<entry> slots_;
  std::uint32_t first_free_ = 0, last_free_ = 0;
  std::uint32_t used_ = 0;
};

}  // namespace handoff
