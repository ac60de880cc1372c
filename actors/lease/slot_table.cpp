#include "actors/lease/slot_table.hpp"

#include <fmt/format.h>

namespace handoff {

slot_table::slot_table(std::uint32_t count) : slots_(count) {
  for (std::uint32_t i = 0; i < count; ++i) slots_[i].next = i + 1;
  last_free_ = count ? count - 1 : 0;
}

expected<slot_id> slot_table::take(room_key owner) {
  if (used_ == size())
    return fail(errc::limit_exceeded, fmt::format("all {} metadata slots are taken, none is left for {}",
                                                  size(), to_string(owner)));
  auto slot = first_free_;
  auto& e = slots_[slot];
  first_free_ = e.next;
  e.owner = owner;
  e.generation += 1;
  used_ += 1;
  return slot_id{slot};
}

error slot_table::give_back(slot_id slot, room_key owner) {
  if (auto e = check_owner(slot, owner)) return e;
  slots_[slot.value].owner.reset();
  // With every slot taken the list is empty, whatever its ends say.
  if (used_ == size())
    first_free_ = slot.value;
  else
    slots_[last_free_].next = slot.value;
  last_free_ = slot.value;
  used_ -= 1;
  return {};
}

error slot_table::rekey(slot_id slot, room_key from, room_key to) {
  if (auto e = check_owner(slot, from)) return e;
  slots_[slot.value].owner = to;
  return {};
}

error slot_table::check_owner(slot_id slot, room_key owner) const {
  if (slot.value >= slots_.size())
    return {errc::internal, fmt::format("metadata slot {} of {} does not exist", slot.value, size()), {}};
  const auto& held = slots_[slot.value].owner;
  if (held && *held == owner) return {};
  return {errc::internal,
          fmt::format("metadata slot {} is not held by {} but {}", slot.value, to_string(owner),
                      held ? "by " + to_string(*held) : std::string("free")),
          {}};
}

std::optional<room_key> slot_table::owner(slot_id slot) const {
  return slot.value < slots_.size() ? slots_[slot.value].owner : std::nullopt;
}

std::uint64_t slot_table::generation(slot_id slot) const {
  return slot.value < slots_.size() ? slots_[slot.value].generation : 0;
}

}  // namespace handoff
