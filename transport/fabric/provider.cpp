#include "transport/fabric/provider.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace handoff::transport::fabric {
namespace {

constexpr std::array known = {"shm", "tcp"};  // best first

/// libfabric reads its environment once, at the first fi_getinfo. With cross-memory attach on, a writer's own
/// system call copies into our memory: keys are unchecked and a fence cannot stop it. So it is off unless the
/// user's environment says otherwise.
void set_environment() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("FI_SHM_DISABLE_CMA", "1", 0); });
}

bool is_wildcard(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || address == "::" || address == "*";
}

info_ptr make_hints(const std::string& name) {
  info_ptr hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup(name.c_str());
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->tx_attr->op_flags = 0;
  return hints;
}

expected<info_ptr> get_info(const std::string& name, const std::string& bind_address) {
  set_environment();
  if (std::find(known.begin(), known.end(), name) == known.end())
    return fail(errc::transport_provider, fmt::format("provider {}: handoff uses shm and tcp", name));
  const bool tcp = name == "tcp";
  if (tcp && is_wildcard(bind_address))
    return fail(errc::transport_provider,
                fmt::format("tcp: bind address \"{}\" is a wildcard, which peers cannot connect to; name one "
                            "address of this host",
                            bind_address));
  auto hints = make_hints(name);
  if (!hints) return fail(errc::transport_provider, "fi_allocinfo: out of memory");
  fi_info* found = nullptr;
  // Port 0: the kernel chooses, so that two endpoints never meet.
  const int status = tcp ? fi_getinfo(api_version, bind_address.c_str(), "0", FI_SOURCE, hints.get(), &found)
                         : fi_getinfo(api_version, nullptr, nullptr, 0, hints.get(), &found);
  if (status != 0)
    return fail(errc::transport_provider,
                fmt::format("{}: {}", name, describe_failure("fi_getinfo", status)));
  return info_ptr(found);
}

provider_caps read_caps(const fi_info& info, bool wait_descriptor) {
  provider_caps caps;
  caps.virtual_addresses = (info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  caps.provider_keys = (info.domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
  caps.wait_descriptor = wait_descriptor;
  if (const auto key_bytes = info.domain_attr->mr_key_size; key_bytes < sizeof(std::uint64_t))
    caps.key_mask = (std::uint64_t{1} << (8 * key_bytes)) - 1;
  caps.message_bytes_max = info.ep_attr->max_msg_size;
  return caps;
}

bool has_wait_descriptor(fid_domain* domain) {
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_MSG;
  attributes.wait_obj = FI_WAIT_FD;
  handle<fid_cq> queue;
  return fi_cq_open(domain, &attributes, queue.out(), nullptr) == 0;
}

}  // namespace

std::string describe_failure(const char* call, std::int64_t status) {
  const auto number = static_cast<int>(status < 0 ? -status : status);
  return fmt::format("{}: {} ({})", call, fi_strerror(number), number);
}

std::vector<std::string> available_providers(const std::vector<std::string>& allowed,
                                             const std::string& bind_address, const log_callback& log) {
  std::vector<std::string> result;
  for (const std::string name : known) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      if (log) log(fmt::format("provider {}: not among the allowed ones", name));
      continue;
    }
    auto info = get_info(name, bind_address);
    if (!info) {
      if (log) log(fmt::format("provider {} is not offered here: {}", name, info.error().detail));
      continue;
    }
    const auto* cma = std::getenv("FI_SHM_DISABLE_CMA");
    if (log)
      log(fmt::format("provider {}: libfabric's {}{}", name, (*info)->fabric_attr->prov_name,
                      name == "shm" ? fmt::format(", FI_SHM_DISABLE_CMA={}", cma ? cma : "unset") : ""));
    result.push_back(name);
  }
  return result;
}

expected<std::shared_ptr<provider>> open_provider(const std::string& name, const std::string& bind_address) {
  auto info = get_info(name, bind_address);
  if (!info) return tl::unexpected(info.error());
  auto result = std::make_shared<provider>();
  result->name = name;
  result->info = std::move(*info);
  auto& p = *result;
  if (int status = fi_fabric(p.info->fabric_attr, p.fabric.out(), nullptr); status != 0)
    return fail(errc::transport_provider, fmt::format("{}: {}", name, describe_failure("fi_fabric", status)));
  if (int status = fi_domain(p.fabric.get(), p.info.get(), p.domain.out(), nullptr); status != 0)
    return fail(errc::transport_provider, fmt::format("{}: {}", name, describe_failure("fi_domain", status)));
  p.caps = read_caps(*p.info, has_wait_descriptor(p.domain.get()));
  return result;
}

}  // namespace handoff::transport::fabric
