// One libfabric provider, opened: what it can do is asked of it, never assumed from its name.
//
//   shm   peers on the same host; no wait descriptor; virtual addresses
//   tcp   "tcp" with RDM endpoints, which is tcp;ofi_rxm on libfabric 1.17; waits on a descriptor; offsets
//
// `net` and `sockets` are never offered: the one spins on its descriptor, the other loses completions.
#pragma once

#include "transport/fabric/handles.hpp"
#include "transport/transport.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace handoff::transport::fabric {

using log_callback = std::function<void(const std::string&)>;

/// The API level that is asked for: served by libfabric 1.17 and by 2.x alike.
inline constexpr std::uint32_t api_version = FI_VERSION(1, 14);

struct provider_caps {
  bool virtual_addresses = false;  ///< remote address = base + offset, else the offset alone
  bool provider_keys = false;      ///< the provider chooses registration keys
  bool wait_descriptor = false;    ///< an idle queue can be waited for in poll()
  std::uint64_t key_mask = ~std::uint64_t{0};
  std::uint64_t message_bytes_max = 0;  ///< the longest write
};

/// fabric and domain of one provider; endpoints share it and keep it alive.
struct provider {
  std::string name;
  info_ptr info;
  handle<fid_fabric> fabric;
  handle<fid_domain> domain;
  provider_caps caps;
};

/// Which of `allowed` libfabric offers on this machine, best first; `log` hears why each is in or out.
std::vector<std::string> available_providers(const std::vector<std::string>& allowed,
                                             const std::string& bind_address, const log_callback& log);

/// Errors: transport_provider, with libfabric's reason.
expected<std::shared_ptr<provider>> open_provider(const std::string& name, const std::string& bind_address);

/// "fi_endpoint: Cannot allocate memory".
std::string describe_failure(const char* call, std::int64_t status);

}  // namespace handoff::transport::fabric
