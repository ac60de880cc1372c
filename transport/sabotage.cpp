#include "transport/sabotage.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace handoff {
namespace {

constexpr std::pair<sabotage_kind, std::string_view> names[] = {
    {sabotage_kind::none, "none"},
    {sabotage_kind::flip_byte, "flip-byte"},
    {sabotage_kind::skip_page, "skip-page"},
    {sabotage_kind::swap_rooms, "swap-rooms"},
    {sabotage_kind::stale_page, "stale-page"},
    {sabotage_kind::leak_lease, "leak-lease"},
    {sabotage_kind::drop_room_done, "drop-room-done"},
};

}  // namespace

std::string_view to_string(sabotage_kind kind) {
  for (const auto& [value, name] : names)
    if (value == kind) return name;
  return "?";
}

expected<sabotage_kind> parse_sabotage_kind(std::string_view name) {
  std::string known;
  for (const auto& [value, text] : names) {
    if (text == name) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  return fail(errc::invalid_argument,
              fmt::format("'{}' is no kind of sabotage; the kinds are {}", name, known));
}

namespace transport {
namespace {

std::uint32_t transfers_to_pass(std::uint64_t seed) {
  constexpr auto choices = sabotage_transport::passed_max - sabotage_transport::passed_min + 1;
  return sabotage_transport::passed_min + static_cast<std::uint32_t>(seed % choices);
}

/// Exchanges the destinations of blocks of equal size; returns how many pairs there were.
std::size_t exchange(std::vector<block>& a, std::vector<block>& b) {
  std::size_t pairs = 0;
  std::vector<bool> taken(b.size());
  for (auto& x : a) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (taken[i] || b[i].remote != x.remote || b[i].bytes != x.bytes) continue;
      std::swap(x.remote_offset, b[i].remote_offset);
      taken[i] = true;
      ++pairs;
      break;
    }
  }
  return pairs;
}

}  // namespace

sabotage_transport::sabotage_transport(std::unique_ptr<transport> inner, sabotage_kind kind,
                                       std::uint64_t seed)
    : inner_(std::move(inner)), kind_(kind), to_pass_(transfers_to_pass(seed)) {
  done_ = kind == sabotage_kind::none || kind == sabotage_kind::leak_lease;
}

expected<void> sabotage_transport::submit(transfer t) {
  if (done_ || !can_harm(t)) return inner_->submit(std::move(t));
  if (to_pass_ > 0) {
    --to_pass_;
    return inner_->submit(std::move(t));
  }
  return harm(std::move(t));
}

bool sabotage_transport::can_harm(const transfer& t) const {
  switch (kind_) {
    case sabotage_kind::flip_byte:
    case sabotage_kind::skip_page:
    case sabotage_kind::stale_page:
      return !t.blocks.empty();
    case sabotage_kind::swap_rooms:
      // A room notifies once: two transfers that do are of two rooms.
      return !t.blocks.empty() && t.notify;
    case sabotage_kind::drop_room_done:
      return t.notify.has_value();
    case sabotage_kind::none:
    case sabotage_kind::leak_lease:
      break;
  }
  return false;
}

expected<void> sabotage_transport::harm(transfer t) {
  switch (kind_) {
    case sabotage_kind::flip_byte:
      done_ = flip_byte(t);
      break;
    case sabotage_kind::skip_page:
    case sabotage_kind::stale_page:
      t.blocks.erase(t.blocks.begin() + static_cast<std::ptrdiff_t>(t.blocks.size() / 2));
      done_ = true;
      break;
    case sabotage_kind::drop_room_done:
      t.notify.reset();
      done_ = true;
      break;
    case sabotage_kind::swap_rooms:
      return swap_with_held(std::move(t));
    case sabotage_kind::none:
    case sabotage_kind::leak_lease:
      break;
  }
  return inner_->submit(std::move(t));
}

expected<void> sabotage_transport::swap_with_held(transfer t) {
  if (!held_) {
    held_ = std::move(t);
    return {};
  }
  if (held_->peer == t.peer) done_ = exchange(held_->blocks, t.blocks) > 0;
  auto first = std::exchange(held_, std::nullopt);
  // The held one was accepted already: should it not be taken now, its room ends by its own bound.
  (void)inner_->submit(std::move(*first));
  return inner_->submit(std::move(t));
}

/// Sends one byte of the first block from the address of a byte that differs from it.
bool sabotage_transport::flip_byte(transfer& t) const {
  const block whole = t.blocks.front();
  if (whole.local.value >= regions_.size()) return false;
  const auto& region = regions_[whole.local.value];
  if (region.kind != memory_kind::host || whole.local_offset > region.bytes ||
      whole.bytes > region.bytes - whole.local_offset)
    return false;
  const std::span<const std::byte> source{region.base + whole.local_offset, whole.bytes};
  const auto at = source.size() / 2;
  const auto other = std::find_if(source.begin(), source.end(), [&](std::byte b) { return b != source[at]; });
  if (other == source.end()) return false;

  const auto part = [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    return block{whole.local, whole.local_offset + from, whole.remote, whole.remote_offset + to, bytes};
  };
  std::vector<block> parts;
  if (at > 0) parts.push_back(part(0, 0, at));
  parts.push_back(part(static_cast<std::uint64_t>(other - source.begin()), at, 1));
  if (at + 1 < source.size()) parts.push_back(part(at + 1, at + 1, source.size() - at - 1));
  t.blocks.erase(t.blocks.begin());
  t.blocks.insert(t.blocks.begin(), parts.begin(), parts.end());
  return true;
}

// -- everything else passes through --------------------------------------------------------------------

std::vector<std::string> sabotage_transport::providers() const {
  return inner_->providers();
}

expected<region_id> sabotage_transport::register_region(memory_region region) {
  auto id = inner_->register_region(region);
  if (id) {
    if (regions_.size() <= id->value) regions_.resize(id->value + 1);
    regions_[id->value] = region;
  }
  return id;
}

expected<void> sabotage_transport::unregister_region(region_id region) {
  return inner_->unregister_region(region);
}

expected<endpoint_record> sabotage_transport::open_peer(peer_id peer, session_id session,
                                                        const std::string& provider) {
  return inner_->open_peer(peer, session, provider);
}

expected<void> sabotage_transport::connect_peer(peer_id peer, const endpoint_record& remote) {
  return inner_->connect_peer(peer, remote);
}

expected<void> sabotage_transport::send_frame(peer_id peer, outgoing_frame frame) {
  return inner_->send_frame(peer, std::move(frame));
}

/// A held transfer ends with its peer, as every other one.
void sabotage_transport::submit_held() {
  if (auto held = std::exchange(held_, std::nullopt)) (void)inner_->submit(std::move(*held));
}

void sabotage_transport::fence(peer_id peer) {
  submit_held();
  inner_->fence(peer);
}

void sabotage_transport::close_peer(peer_id peer) {
  submit_held();
  inner_->close_peer(peer);
}

status sabotage_transport::current_status() const {
  return inner_->current_status();
}

void sabotage_transport::close() {
  inner_->close();
}

}  // namespace transport
}  // namespace handoff
