// The suite's endpoints as transports of this process. HANDOFF_RIG_PROVIDER names the provider.
#include "tests/transport/contract/rig.hpp"
#include "transport/fabric/fabric_transport.hpp"

#include <deque>
#include <stdexcept>

namespace handoff::transport::contract {

namespace {

class inproc_rig final : public rig {
 public:
  explicit inproc_rig(const rig_options& options) : regions_(options.region_bytes.size()) {
    for (std::size_t i = 0; i < options.endpoints; ++i) {
      settings limits = options.limits;
      limits.incarnation = {i + 1};
      auto& recorder = recorders_.emplace_back();
      auto& t =
          transports_.emplace_back(fabric::make_fabric_transport(limits, recorder, {HANDOFF_RIG_PROVIDER}));
      for (std::size_t r = 0; r < regions_; ++r) {
        const auto memory = memories_.emplace_back(options.region_bytes[r]).span();
        const bool shown = r + options.hidden_regions < regions_;
        if (!t->register_region({memory.data(), memory.size(), memory_kind::host, shown}))
          throw std::runtime_error("register_region");
      }
    }
  }

  transport& at(std::size_t endpoint) override { return *transports_.at(endpoint); }
  recorder& events(std::size_t endpoint) override { return recorders_.at(endpoint); }
  std::span<std::byte> memory(std::size_t endpoint, std::size_t region) override {
    return memories_.at(endpoint * regions_ + region).span();
  }
  bool wait_for(const std::function<bool()>& predicate, duration limit) override {
    return poll_until(predicate, limit);
  }
  void freeze(std::size_t) override {}
  void thaw(std::size_t) override {}
  void kill(std::size_t) override {}

 private:
  std::size_t regions_;
  std::deque<mapped_memory> memories_;
  std::deque<recorder> recorders_;
  std::deque<std::unique_ptr<transport>> transports_;
};

}  // namespace

const provider_info& provider_under_test() {
  static const provider_info info{HANDOFF_RIG_PROVIDER, HANDOFF_RIG_PROVIDER, {}};
  return info;
}

std::unique_ptr<rig> make_rig(const rig_options& options) {
  return std::make_unique<inproc_rig>(options);
}

}  // namespace handoff::transport::contract
