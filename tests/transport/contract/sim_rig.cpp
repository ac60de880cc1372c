// The suite's endpoints as processes of one simulated world.
#include "tests/transport/contract/rig.hpp"
#include "transport/sim/sim_world.hpp"

#include <deque>
#include <stdexcept>

namespace handoff::transport::contract {

namespace {

class sim_rig final : public rig {
 public:
  explicit sim_rig(const rig_options& options) : regions_(options.region_bytes.size()), world_(20260101) {
    for (std::size_t i = 0; i < options.endpoints; ++i) {
      settings limits = options.limits;
      limits.host_id = "sim";
      limits.incarnation = {i + 1};
      transport& t = world_.add(limits, recorders_.emplace_back());
      for (std::size_t r = 0; r < regions_; ++r) {
        const auto memory = memories_.emplace_back(options.region_bytes[r]).span();
        const bool shown = r + options.hidden_regions < regions_;
        if (!t.register_region({memory.data(), memory.size(), memory_kind::host, shown}))
          throw std::runtime_error("register_region");
      }
    }
  }

  transport& at(std::size_t endpoint) override { return world_.at(endpoint); }
  recorder& events(std::size_t endpoint) override { return recorders_.at(endpoint); }
  std::span<std::byte> memory(std::size_t endpoint, std::size_t region) override {
    return memories_.at(endpoint * regions_ + region).span();
  }
  bool wait_for(const std::function<bool()>& predicate, duration limit) override {
    return world_.run_until(predicate, limit);
  }
  void freeze(std::size_t endpoint) override { world_.freeze(endpoint); }
  void thaw(std::size_t endpoint) override { world_.thaw(endpoint); }
  void kill(std::size_t endpoint) override { world_.kill(endpoint); }

 private:
  std::size_t regions_;
  std::deque<mapped_memory> memories_;
  std::deque<recorder> recorders_;
  sim_world world_;
};

}  // namespace

const provider_info& provider_under_test() {
  static const provider_info info{"sim", "sim", {.freeze = true, .kill = true}};
  return info;
}

std::unique_ptr<rig> make_rig(const rig_options& options) {
  return std::make_unique<sim_rig>(options);
}

}  // namespace handoff::transport::contract
