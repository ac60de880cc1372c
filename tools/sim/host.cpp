#include "tools/sim/host.hpp"

#include <algorithm>

namespace handoff::sim {

namespace {

constexpr unsigned spins_max = 1000;

}  // namespace

host::host(kernel& k, std::size_t slot, engine_identity self, transport::settings limits, duration skew,
           int drift_ppm)
    : k_(k),
      transport_(&k.wire.add(std::move(limits), *this)),
      slot_(slot),
      index_(k.wire.size() - 1),
      self_(std::move(self)),
      offset_(skew),
      drift_ppm_(drift_ppm) {}

// -- clock -------------------------------------------------------------------------------------------------

time_point host::now() const {
  const auto w = k_.now().time_since_epoch();
  return time_point(w + w / 1'000'000 * drift_ppm_ + offset_ + 1h);
}

time_point host::world_time_of(time_point local) const {
  const auto ahead = local - now();
  if (ahead <= duration(0)) return k_.now();
  // Rounded up: a timer never fires early.
  return k_.now() + ahead * 1'000'000 / (1'000'000 + drift_ppm_) + 2us;
}

void host::jump(duration forward) {
  offset_ += forward;
  jumped_ += forward;
  k_.trace(name(), "its clock jumps by {} ms", forward / 1ms);
  rearm();
}

duration host::not_awake() const {
  auto frozen = frozen_for_ + (frozen_ ? k_.now() - frozen_since_ : duration(0));
  return frozen + frozen / 10 + jumped_;
}

// -- faults ------------------------------------------------------------------------------------------------

void host::freeze() {
  if (!alive_ || frozen_) return;
  frozen_ = true;
  frozen_since_ = k_.now();
  k_.trace(name(), "is stopped");
  k_.wire.freeze(index_);
}

void host::thaw() {
  if (!alive_ || !frozen_) return;
  frozen_ = false;
  frozen_for_ += k_.now() - frozen_since_;
  k_.trace(name(), "goes on");
  k_.wire.thaw(index_);
}

void host::kill() {
  alive_ = false;
  k_.trace(name(), "dies (incarnation {:016x})", self_.incarnation.value);
  k_.wire.kill(index_);
}

// -- parts -------------------------------------------------------------------------------------------------

void host::post(part from, part to, std::function<void()> what) {
  auto& last = last_[static_cast<std::size_t>(from) * part_count + static_cast<std::size_t>(to)];
  last = std::max(last, k_.now() + duration(1000 + static_cast<duration::rep>(k_.random.below(16'000))));
  k_.wire.at(last, index_, std::move(what));
}

void host::later(duration d, std::function<void()> what) {
  k_.wire.at(k_.now() + d, index_, std::move(what));
}

void host::later_at(time_point world_time, std::function<void()> what) {
  k_.wire.at(world_time, index_, std::move(what));
}

void host::arm(part p, time_point local_deadline) {
  if (local_deadline == time_point::max()) return;
  auto& t = timers_[static_cast<std::size_t>(p)];
  const auto at = world_time_of(local_deadline);
  if (t.pending && t.at <= at) return;
  t.pending = true;
  t.at = at;
  k_.wire.at(at, index_, [this, p, at] {
    auto& mine = timers_[static_cast<std::size_t>(p)];
    if (!mine.pending || mine.at != at) return;
    mine.pending = false;
    if (k_.now() - mine.window > 1ms) mine.window = k_.now(), mine.fired = 0;
    // Left unarmed then: the rooms' bounds tell the rest.
    if (++mine.fired > spins_max)
      return k_.violate(name(), "a timer fires {} times in a millisecond", spins_max);
    tick(p);
  });
}

}  // namespace handoff::sim
