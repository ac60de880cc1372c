#include "transport/sim/sim_peer.hpp"

#include "transport/sim/sim_transport.hpp"
#include "transport/validate.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace handoff::transport {

namespace {

/// Address and nonce as bytes; both ends are this process.
template <class Byte>
std::vector<Byte> to_bytes(std::uint64_t x) {
  std::vector<Byte> bytes(sizeof x);
  std::memcpy(bytes.data(), &x, sizeof x);
  return bytes;
}

std::uint64_t address_in(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t address = 0;
  if (bytes.size() == sizeof address) std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

}  // namespace

sim_peer::sim_peer(sim_transport& owner, peer_id peer, session_id session)
    : owner_(owner),
      peer_(peer),
      address_(owner.wire().open(*this)),
      session_(session),
      silence_(owner.limits().silence_after, owner.wire().now()),
      heartbeat_(owner.limits().heartbeat_interval, owner.wire().now()) {
  for (const memory_region& r : owner.regions())
    shown_.push_back(r.shown ? show({r.base, r.bytes}) : remote_region{});
  probe_region_ = show(probe_memory_);
}

remote_region sim_peer::show(std::span<std::byte> memory) {
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
  std::uint64_t key = 0;
  while (key == 0 || registrations_.contains(key)) key = owner_.wire().random_key();
  registrations_.emplace(key, memory);
  return {key, base, memory.size()};
}

endpoint_record sim_peer::record() const {
  endpoint_record r;
  r.provider = "sim";
  r.host_id = owner_.limits().host_id;
  r.address = to_bytes<std::uint8_t>(address_);
  r.probe = probe_region_;
  r.regions = shown_;
  return r;
}

std::size_t sim_peer::process() const {
  return owner_.process();
}

void sim_peer::at(time_point when, void (sim_peer::*what)()) {
  sim_wire& wire = owner_.wire();
  wire.at(when, process(), [&wire, what, address = address_] {
    if (sim_peer* p = wire.find(address)) (p->*what)();
  });
}

// -- the owner's calls -----------------------------------------------------------------------------

expected<void> sim_peer::connect(const endpoint_record& remote) {
  if (stage_ != stage::opened)
    return fail(errc::room_state, fmt::format("peer {} is connected already", peer_.value));
  stage_ = stage::connecting;
  remote_ = remote;
  remote_address_ = address_in(remote.address);
  const time_point now = owner_.wire().now();
  std::ranges::copy(to_bytes<std::byte>(owner_.wire().random_key()), probe_source_.begin());
  at(now, &sim_peer::probe);
  at(now + owner_.limits().probe_timeout, &sim_peer::probe_deadline);
  return {};
}

expected<void> sim_peer::submit(transfer t) {
  if (stage_ != stage::ready) return fail(errc::peer_gone, fmt::format("peer {} is not ready", peer_.value));
  if (std::ranges::any_of(runs_, [&](const run& r) { return r.cursor.id() == t.id; }))
    return fail(errc::invalid_argument, fmt::format("transfer {} is submitted already", t.id.value));
  if (auto ok = check_transfer(t, owner_.regions(), remote_.regions); !ok) return ok;
  sim_wire& wire = owner_.wire();
  wire.at(wire.now() + t.timeout, process(), [&wire, address = address_, id = t.id] {
    if (sim_peer* p = wire.find(address)) p->deadline(id);
  });
  runs_.push_back({plan_cursor(std::move(t), owner_.limits().write_bytes_max)});
  at(wire.now(), &sim_peer::pump);
  return {};
}

expected<void> sim_peer::send(outgoing_frame frame) {
  if (stage_ != stage::ready) return fail(errc::peer_gone, fmt::format("peer {} is not ready", peer_.value));
  if (auto ok = check_frame(frame); !ok) return ok;
  if (auto ok = flow_.push(std::move(frame)); !ok) return ok;
  at(owner_.wire().now(), &sim_peer::pump);
  return {};
}

void sim_peer::end(const error& reason) {
  while (!runs_.empty()) {
    runs_.front().cursor.stop(reason);
    finish(runs_.front());
  }
  for (auto& [id, op] : operations_) {
    op.write->kept.assign(op.write->source.begin(), op.write->source.end());
    op.write->source = op.write->kept;
  }
  owner_.wire().close(address_);
  owner_.wire().tell_end(process(), address_);
}

void sim_peer::add_to(status& s) const {
  s.registrations += registrations_.size();
  s.transfers_active += runs_.size();
  s.writes_in_flight += operations_.size();
  s.frames_queued += flow_.queued();
}

// -- transfers -------------------------------------------------------------------------------------

void sim_peer::pump() {
  if (stage_ == stage::opened || stage_ == stage::failed) return;
  while (stage_ == stage::ready && flow_.next() != nullptr) {
    outgoing_frame frame = flow_.take_next();
    ++owner_.totals.frames_sent;
    transmit(frame.type, std::move(frame.payload));
  }
  if (flow_.owes_frame()) transmit_own(message_type::credit, frame_class::credit);
  if (stage_ == stage::ready) pump_writes();
}

void sim_peer::pump_writes() {
  const std::size_t window = owner_.limits().window;
  for (auto r = runs_.begin(); r != runs_.end() && operations_.size() < window;) {
    run& current = *r++;
    while (operations_.size() < window && post(current)) {
    }
    settle(current);
  }
}

bool sim_peer::post(run& r) {
  const write_piece* piece = r.cursor.next_write();
  if (piece == nullptr) return false;
  sim_wire& wire = owner_.wire();
  const link_faults& faults = wire.link_to(process(), remote_address_);
  if (wire.chance(faults.post_refused)) {
    ++wire.counts.posts_refused;
    ++owner_.totals.writes_retried;
    r.cursor.retried();
    at(wire.now() + faults.retry_delay, &sim_peer::pump);
    return false;
  }
  if (wire.chance(faults.post_failed)) {
    ++wire.counts.posts_failed;
    r.cursor.stop({errc::transport_post, "injected: the provider refused the write", {}});
    return false;
  }
  const memory_region& local = owner_.regions()[piece->local.value];
  ++owner_.totals.writes_posted;
  post_write({&r, false, nullptr}, remote_.regions[piece->remote.value], piece->remote_offset,
             {local.base + piece->local_offset, piece->bytes});
  r.cursor.posted();
  return true;
}

void sim_peer::post_write(operation op, const remote_region& target, std::uint64_t offset,
                          std::span<const std::byte> source) {
  const std::uint64_t id = next_operation_++;
  op.write =
      std::make_shared<sim_write>(sim_write{address_, id, target.key, target.base + offset, source, {}});
  operations_.emplace(id, op);
  owner_.wire().write(process(), remote_address_, op.write);
}

error sim_peer::write_arrived(const sim_write& write) {
  const auto found = registrations_.find(write.key);
  if (found != registrations_.end()) {
    const std::span<std::byte> memory = found->second;
    const std::uint64_t offset = write.address - reinterpret_cast<std::uintptr_t>(memory.data());
    if (within(offset, write.source.size(), memory.size())) {
      const auto target = memory.subspan(offset, write.source.size());
      if (owner_.wire().on_write) owner_.wire().on_write(process(), target, write.source);
      std::ranges::copy(write.source, target.begin());
      return {};
    }
  }
  ++owner_.wire().counts.writes_bad_key;
  return {errc::transport_completion, "the target has no such key, or the write leaves its region", {}};
}

void sim_peer::write_completed(std::uint64_t id, const error& result) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return;
  const operation op = std::move(found->second);
  operations_.erase(found);
  if (!result) heard();
  if (op.probe && !result && stage_ == stage::connecting) {
    const auto nonce = std::span(probe_source_).first<sizeof(std::uint64_t)>();
    transmit_own(message_type::probe, frame_class::heartbeat, {nonce.begin(), nonce.end()});
  }
  if (op.of != nullptr) {
    if (result) {
      op.of->cursor.write_failed(result);
    } else {
      op.of->cursor.delivered(op.write->source.size());
      owner_.totals.bytes_written += op.write->source.size();
    }
    settle(*op.of);
  }
  pump();
}

void sim_peer::settle(run& r) {
  if (r.cursor.wants_notify()) {
    flow_.push_notify(r.cursor.take_notify());
    at(owner_.wire().now(), &sim_peer::pump);
  }
  if (r.cursor.finished()) finish(r);
}

void sim_peer::finish(run& r) {
  for (auto& [id, op] : operations_)
    if (op.of == &r) op.of = nullptr;
  ++(r.cursor.failed() ? owner_.totals.transfers_failed : owner_.totals.transfers_done);
  owner_.emit(r.cursor.done());
  runs_.remove_if([&](const run& other) { return &other == &r; });
}

void sim_peer::deadline(transfer_id id) {
  const auto found = std::ranges::find_if(runs_, [&](const run& r) { return r.cursor.id() == id; });
  if (found == runs_.end()) return;
  found->cursor.stop({errc::timed_out,
                      fmt::format("transfer {} to peer {}: {} writes were not delivered by its deadline",
                                  id.value, peer_.value, found->cursor.outstanding()),
                      {}});
  finish(*found);
}

}  // namespace handoff::transport
