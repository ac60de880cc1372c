#include "transport/sim/sim_wire.hpp"

#include "transport/sim/sim_peer.hpp"

#include <algorithm>

namespace handoff::transport {

// -- time ------------------------------------------------------------------------------------------

void sim_wire::at(time_point when, std::size_t process, action what) {
  queue_.emplace(std::pair{std::max(when, now_), next_order_++}, scheduled{process, std::move(what)});
}

bool sim_wire::step(time_point limit) {
  if (queue_.empty() || queue_.begin()->first.first > limit) {
    now_ = std::max(now_, limit);
    return false;
  }
  now_ = queue_.begin()->first.first;
  scheduled next = std::move(queue_.begin()->second);
  queue_.erase(queue_.begin());
  process_state& process = processes_[next.process];
  if (process.dead) return true;
  if (process.frozen)
    process.waiting.push_back(std::move(next.what));
  else
    next.what();
  return true;
}

// -- processes -------------------------------------------------------------------------------------

std::size_t sim_wire::add_process() {
  processes_.emplace_back();
  return processes_.size() - 1;
}

void sim_wire::thaw(std::size_t process) {
  processes_[process].frozen = false;
  for (action& what : std::exchange(processes_[process].waiting, {})) at(now_, process, std::move(what));
}

// -- endpoints -------------------------------------------------------------------------------------

endpoint_address sim_wire::open(sim_peer& peer) {
  endpoint_address address = 0;
  while (address == 0 || endpoints_.contains(address)) address = random_();
  endpoints_.emplace(address, &peer);
  return address;
}

sim_peer* sim_wire::find(endpoint_address address) const {
  const auto found = endpoints_.find(address);
  return found == endpoints_.end() ? nullptr : found->second;
}

void sim_wire::tell_end(std::size_t from, endpoint_address address) {
  if (!ends_are_told) return;
  for (const auto& [other, peer] : endpoints_) {
    if (peer->remote_address() == address) tell_end(from, other, peer->process());
  }
}

void sim_wire::tell_end(std::size_t from, endpoint_address other, std::size_t process) {
  if (hold(from, process, [this, from, other, process] { tell_end(from, other, process); })) return;
  at(in_order(state_of(from, process)), process, [this, other] {
    if (sim_peer* p = find(other)) p->remote_ended();
  });
}

// -- traffic ---------------------------------------------------------------------------------------

bool sim_wire::chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random_() >> 11) < probability * 0x1p53;
}

void sim_wire::set_links(const link_faults& faults) {
  default_faults_ = faults;
  for (auto& [ends, link] : links_) link.faults = faults;
}

sim_wire::link_state& sim_wire::state_of(std::size_t from, std::size_t to) {
  return links_.try_emplace({from, to}, link_state{default_faults_, {}, false, {}}).first->second;
}

const link_faults& sim_wire::link_to(std::size_t from, endpoint_address to) {
  const sim_peer* peer = find(to);
  return peer != nullptr ? link(from, peer->process()) : default_faults_;
}

duration sim_wire::delay(const link_faults& faults) {
  const auto spread =
      static_cast<std::uint64_t>(std::max<duration::rep>(0, (faults.delay_max - faults.delay_min).count()));
  const duration base = faults.delay_min + duration(random_() % (spread + 1));
  if (!chance(faults.slow)) return base;
  ++counts.slowed;
  return base + faults.slow_delay;
}

time_point sim_wire::in_order(link_state& link) {
  link.last_arrival = std::max(link.last_arrival, now_ + delay(link.faults));
  return link.last_arrival;
}

void sim_wire::cut(std::size_t from, std::size_t to, bool is_cut) {
  link_state& link = state_of(from, to);
  if (std::exchange(link.is_cut, is_cut) == is_cut || is_cut) return;
  for (action& what : std::exchange(link.held, {})) what();
}

bool sim_wire::hold(std::size_t from, std::size_t to, action what) {
  link_state& link = state_of(from, to);
  if (!link.is_cut) return false;
  ++counts.held;
  link.held.push_back(std::move(what));
  return true;
}

void sim_wire::send(std::size_t from, endpoint_address to, sim_frame frame) {
  const sim_peer* peer = find(to);
  if (peer == nullptr) {
    ++counts.frames_to_nobody;
    return;
  }
  link_state& link = state_of(from, peer->process());
  if (link.is_cut) {
    hold(from, peer->process(), [this, from, to, f = std::move(frame)] { send(from, to, f); });
    return;
  }
  const link_faults& faults = link.faults;
  const auto deliver = [&](time_point when, sim_frame f) {
    at(when, peer->process(), [this, to, f = std::move(f)] {
      if (sim_peer* p = find(to))
        p->frame_arrived(f);
      else
        ++counts.frames_to_nobody;
    });
  };
  const auto off_order = [&] {
    return now_ + delay(faults) +
           duration(random_() %
                    static_cast<std::uint64_t>(std::max<duration::rep>(1, faults.reorder_delay.count())));
  };
  frame.raw = faults.raw_frames;
  frame.lost = chance(faults.frame_loss);
  if (frame.lost) ++counts.frames_lost;
  if (!frame.lost && chance(faults.frame_duplication)) {
    ++counts.frames_duplicated;
    sim_frame copy = frame;
    copy.copy = true;
    deliver(off_order(), std::move(copy));
  }
  if (chance(faults.frame_reordering)) {
    ++counts.frames_reordered;
    deliver(off_order(), std::move(frame));
  } else {
    deliver(in_order(link), std::move(frame));
  }
}

void sim_wire::write(std::size_t from, endpoint_address to, std::shared_ptr<sim_write> write) {
  const sim_peer* peer = find(to);
  if (peer == nullptr) return land(to, write);
  if (hold(from, peer->process(), [this, from, to, write] { this->write(from, to, write); })) return;
  at(now_ + delay(link(from, peer->process())), peer->process(),
     [this, to, write = std::move(write)] { land(to, write); });
}

void sim_wire::land(endpoint_address to, const std::shared_ptr<sim_write>& write) {
  sim_peer* peer = find(to);
  const sim_peer* initiator = find(write->from);
  if (peer == nullptr) {
    ++counts.writes_to_nobody;
    if (ends_are_told && initiator != nullptr)
      complete(initiator->process(), *write,
               {errc::transport_completion, "the target's endpoint has ended", {}});
    return;
  }
  const link_faults faults =
      initiator != nullptr ? link(initiator->process(), peer->process()) : link_faults{};
  const bool failing = chance(faults.completion_failed);
  error result;
  if (!failing || chance(0.5)) result = peer->write_arrived(*write);
  if (failing) {
    ++counts.completions_failed;
    result = {errc::transport_completion, "injected: the write completed in error", {}};
  }
  if (chance(faults.completion_lost)) {
    ++counts.completions_lost;
    return;
  }
  complete(peer->process(), *write, std::move(result));
}

void sim_wire::complete(std::size_t from, const sim_write& write, error result) {
  const sim_peer* initiator = find(write.from);
  if (initiator == nullptr) return;
  if (hold(from, initiator->process(), [this, from, write, result] { complete(from, write, result); }))
    return;
  at(now_ + delay(link(from, initiator->process())), initiator->process(),
     [this, address = write.from, operation = write.operation, result = std::move(result)] {
       if (sim_peer* p = find(address)) p->write_completed(operation, result);
     });
}

}  // namespace handoff::transport
