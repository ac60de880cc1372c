#include "transport/sim/sim_world.hpp"

#include "transport/sim/sim_transport.hpp"

namespace handoff::transport {

sim_world::sim_world(std::uint64_t seed) : wire_(std::make_unique<sim_wire>(seed)) {}

sim_world::~sim_world() = default;

transport& sim_world::add(settings limits, event_sink& sink) {
  const std::size_t process = wire_->add_process();
  processes_.push_back(std::make_unique<sim_transport>(*wire_, process, std::move(limits), sink));
  return *processes_.back();
}

transport& sim_world::at(std::size_t process) {
  return *processes_.at(process);
}

time_point sim_world::now() const {
  return wire_->now();
}

void sim_world::advance_to(time_point t) {
  while (wire_->step(t)) {
  }
}

bool sim_world::run_until(const std::function<bool()>& predicate, duration limit) {
  const time_point end = now() + limit;
  while (!predicate())
    if (!wire_->step(end)) return predicate();
  return true;
}

bool sim_world::step(time_point limit) {
  return wire_->step(limit);
}

void sim_world::at(time_point when, std::size_t process, std::function<void()> what) {
  wire_->at(when, process, std::move(what));
}

void sim_world::watch_writes(
    std::function<void(std::size_t, std::span<std::byte>, std::span<const std::byte>)> watch) {
  wire_->on_write = std::move(watch);
}

void sim_world::cut(std::size_t from, std::size_t to, bool is_cut) {
  wire_->cut(from, to, is_cut);
}

link_faults& sim_world::link(std::size_t from, std::size_t to) {
  return wire_->link(from, to);
}

void sim_world::set_links(const link_faults& faults) {
  wire_->set_links(faults);
}

void sim_world::set_ends_are_told(bool told) {
  wire_->ends_are_told = told;
}

void sim_world::freeze(std::size_t process) {
  wire_->freeze(process);
}

void sim_world::thaw(std::size_t process) {
  wire_->thaw(process);
}

void sim_world::kill(std::size_t process) {
  wire_->end_process(process);
  processes_.at(process)->close();
}

const fault_counts& sim_world::counts() const {
  return wire_->counts;
}

}  // namespace handoff::transport
