// The transport over libfabric: one engine (thread, domain) per provider, started with its first peer, and
// one endpoint per peer and session.
#pragma once

#include "transport/transport.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace handoff::transport::fabric {

/// What is offered on this machine is asked of libfabric once; `log` hears what was found, and why not.
/// @param allowed "shm", "tcp"; others are ignored
/// @param sink must outlive the transport
std::unique_ptr<transport> make_fabric_transport(settings limits, event_sink& sink,
                                                 std::vector<std::string> allowed = {"shm", "tcp"},
                                                 const std::function<void(const std::string&)>& log = {});

/// Same value = same boot of the same host and the same /dev/shm; settings::host_id.
std::string local_host_id();

}  // namespace handoff::transport::fabric
