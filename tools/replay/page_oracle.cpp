#include "tools/replay/page_oracle.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace handoff::replay {
namespace {

/// Every room of a replay is tried once.
constexpr attempt_id only_attempt{1};
/// Owner of what `age_all` leaves behind: attempt 0 is no room's.
constexpr room_key earlier_run{{UINT64_MAX}, {0}};

}  // namespace

page_oracle::page_oracle(pool_memory memory, std::uint64_t seed, pool_side side)
    : memory_(std::move(memory)), seed_(seed), side_(side) {}

std::uint64_t page_oracle::pages_for(std::uint64_t tokens) const {
  return (tokens + memory_.page_tokens() - 1) / memory_.page_tokens();
}

room_pages page_oracle::place(room_id room, std::uint64_t tokens, std::vector<page_id> pages) {
  rooms_.emplace_back(room, pages.size());
  auto contents = room_contents(seed_, {room, only_attempt}, pages.size());
  return {room, tokens, std::move(pages), std::move(contents)};
}

std::uint32_t page_oracle::tokens_in(const room_pages& room, std::uint64_t item) const {
  const auto before = item / memory_.buffers().size() * memory_.page_tokens();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(room.tokens - before, memory_.page_tokens()));
}

item_key page_oracle::key(content_id content, std::size_t buffer) const {
  const auto& layout = memory_.buffers()[buffer];
  return {content, layout.layer, layout.kind};
}

void page_oracle::write(const room_pages& room, std::uint64_t item) const {
  const auto b = buffer(item);
  fill(memory_.item(b, at(room, item), tokens_in(room, item)),
       key(room.contents[item / memory_.buffers().size()], b), token_bytes(memory_.buffers()[b]));
}

page_oracle::verdict page_oracle::verify(const room_pages& room, std::uint64_t item) const {
  const auto b = buffer(item);
  const auto tokens = tokens_in(room, item);
  const auto owned = memory_.item(b, at(room, item), tokens);
  verdict result;
  result.verified = owned.size();
  result.first = replay::verify(owned, key(room.contents[item / memory_.buffers().size()], b),
                                token_bytes(memory_.buffers()[b]));
  if (result.first) result.wrong = result.first->wrong_bytes;
  const auto rest = compare_poison(at(room, item), b, tokens);
  if (!rest) return result;
  result.wrong += rest->wrong_bytes;
  if (!result.first) {
    result.first = rest;
    result.outside = true;
  }
  return result;
}

std::optional<difference> page_oracle::verify_untouched(const room_pages& room, std::uint64_t item) const {
  return compare_poison(at(room, item), buffer(item), 0);
}

std::optional<difference> page_oracle::verify_untouched(std::uint64_t item) const {
  return compare_poison(pool_page(item), buffer(item), 0);
}

void page_oracle::poison_page(page_id page, std::size_t buffer) const {
  if (aged_) return;
  fill(memory_.item(buffer, page), key(poison_content(seed_, side_, page), buffer),
       token_bytes(memory_.buffers()[buffer]));
}

void page_oracle::age_all() {
  aged_ = true;
  const auto contents = room_contents(seed_, earlier_run, memory_.pages());
  for (std::uint64_t item = 0; item < items(memory_.pages()); ++item) {
    const auto page = pool_page(item);
    const auto b = buffer(item);
    fill(memory_.item(b, page), key(contents[page.value], b), token_bytes(memory_.buffers()[b]));
  }
}

/// Offsets in the result count from the item's start.
std::optional<difference> page_oracle::compare_poison(page_id page, std::size_t buffer,
                                                      std::uint32_t first_token) const {
  if (aged_) return std::nullopt;
  const auto bytes = token_bytes(memory_.buffers()[buffer]);
  auto found = replay::verify(memory_.item(buffer, page).subspan(first_token * bytes),
                              key(poison_content(seed_, side_, page), buffer), bytes, first_token);
  if (found) found->first += first_token * bytes;
  return found;
}

std::string page_oracle::explain(const room_pages& room, std::uint64_t item, const difference& found,
                                 const page_allocator& owners) const {
  const auto b = buffer(item);
  const auto& layout = memory_.buffers()[b];
  return fmt::format("room {} layer {} {} page {} {}", room.room.value, layout.layer, to_string(layout.kind),
                     item / memory_.buffers().size(), where_and_what({at(room, item), b}, found, owners));
}

std::string page_oracle::explain(std::uint64_t item, const difference& found,
                                 const page_allocator& owners) const {
  const auto b = buffer(item);
  const auto& layout = memory_.buffers()[b];
  return fmt::format("free page of layer {} {} {}", layout.layer, to_string(layout.kind),
                     where_and_what({pool_page(item), b}, found, owners));
}

std::string page_oracle::where_and_what(spot where, const difference& found,
                                        const page_allocator& owners) const {
  const auto bytes = token_bytes(memory_.buffers()[where.buffer]);
  return fmt::format("(pool page {}) token {} byte {}: expected {:#04x}, got {:#04x}: {}", where.page.value,
                     found.first / bytes, found.first % bytes, static_cast<unsigned>(found.expected),
                     static_cast<unsigned>(found.got), whose(where, found, owners));
}

std::string page_oracle::whose(spot where, const difference& found, const page_allocator& owners) const {
  content_index index;
  for (const auto& [room, pages] : rooms_) index.add_room(seed_, {room, only_attempt}, pages);
  if (aged_) index.add_room(seed_, earlier_run, memory_.pages());
  index.add_poison(seed_, pool_side::source, memory_.pages());
  index.add_poison(seed_, pool_side::sink, memory_.pages());

  const auto& layout = memory_.buffers()[where.buffer];
  const auto bytes = token_bytes(layout);
  const auto known = index.find(found.got_word, found.first % bytes, memory_.buffers());
  if (!known) return fmt::format("{} byte(s) differ, bytes of no known page", found.wrong_bytes);
  auto place = fmt::format("page {}", known->who.page);
  if (known->layer != layout.layer || known->kind != layout.kind)
    place += fmt::format(" layer {} {}", known->layer, to_string(known->kind));
  if (known->token != found.first / bytes) place += fmt::format(" token {}", known->token);
  if (!known->who.room && known->who.side != side_)
    return fmt::format("poison of the other side's pool {}: read before it was filled or after it was freed",
                       place);
  if (!known->who.room)
    return known->who.page == where.page.value ? "poison: never written"
                                               : fmt::format("poison of pool {}", place);
  if (*known->who.room == earlier_run.room && known->who.page == where.page.value)
    return "stale: bytes from before this run, never written";
  if (owners.previous_owner(where.page) == known->who.room)
    return fmt::format("stale: bytes of room {} {}, whose page this was before", known->who.room->value,
                       place);
  return fmt::format("bytes of room {} {}", known->who.room->value, place);
}

}  // namespace handoff::replay
