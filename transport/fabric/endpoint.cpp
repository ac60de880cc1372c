#include "transport/fabric/endpoint.hpp"

#include "transport/fabric/shm_files.hpp"
#include "transport/fabric/shm_neighbours.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

namespace handoff::transport::fabric {
namespace {

constexpr std::string_view shm_prefix = "fi_shm://";
constexpr std::size_t queue_entries = 512;  // receives + sends + a window of writes, with room
constexpr int key_attempts = 8;             // random keys collide once in 2^64

unexpected refused(const provider& p, const char* call, std::int64_t status) {
  return fail(errc::transport_provider, fmt::format("{}: {}", p.name, describe_failure(call, status)));
}

std::string shm_path(const std::string& name) {
  return "/dev/shm/" + name;
}

/// libfabric is handed this as a path or a socket address: check what a peer sent.
expected<void> check_address(const provider& p, std::span<const std::uint8_t> address) {
  if (p.name == "shm") {
    const std::string text(address.begin(), address.end());
    const bool ok = text.size() > shm_prefix.size() + 1 && text.back() == '\0' &&
                    text.starts_with(shm_prefix) &&
                    shm_files::is_name(text.substr(shm_prefix.size(), text.size() - shm_prefix.size() - 1));
    if (!ok) return fail(errc::invalid_argument, "shm: the peer's address is not a name of handoff's");
    return {};
  }
  sa_family_t family = AF_UNSPEC;
  if (address.size() >= sizeof(family)) std::memcpy(&family, address.data(), sizeof(family));
  const bool ok = (family == AF_INET && address.size() == sizeof(sockaddr_in)) ||
                  (family == AF_INET6 && address.size() == sizeof(sockaddr_in6));
  if (!ok)
    return fail(
        errc::invalid_argument,
        fmt::format("tcp: the peer's address of {} bytes is no IPv4 or IPv6 socket address", address.size()));
  return {};
}

}  // namespace

void retire_endpoint::operator()(endpoint* closed) const {
  closed->drop_regions();
  if (closed->shm_name().empty()) {
    delete closed;
    return;
  }
  unlink(shm_path(closed->shm_name()).c_str());
  retire_neighbour(closed);
}

expected<endpoint_ptr> endpoint::make(std::shared_ptr<provider> p, const std::string& shm_name) {
  endpoint_ptr result(new endpoint(std::move(p)));
  if (auto ok = result->open(shm_name); !ok) return tl::unexpected(ok.error());
  return result;
}

expected<void> endpoint::open(const std::string& shm_name) {
  auto& p = *provider_;
  fi_av_attr av_attributes{};
  av_attributes.type = FI_AV_UNSPEC;
  av_attributes.count = 1;
  if (int s = fi_av_open(p.domain.get(), &av_attributes, addresses_.out(), nullptr); s != 0)
    return refused(p, "fi_av_open", s);
  fi_cq_attr cq_attributes{};
  cq_attributes.format = FI_CQ_FORMAT_MSG;
  cq_attributes.size = queue_entries;
  cq_attributes.wait_obj = p.caps.wait_descriptor ? FI_WAIT_FD : FI_WAIT_NONE;
  if (int s = fi_cq_open(p.domain.get(), &cq_attributes, queue_.out(), nullptr); s != 0)
    return refused(p, "fi_cq_open", s);
  if (p.caps.wait_descriptor)
    if (int s = fi_control(&queue_->fid, FI_GETWAIT, &wait_fd_); s != 0)
      return refused(p, "fi_control(FI_GETWAIT)", s);
  {
    signal_handlers_kept kept;
    if (int s = fi_endpoint(p.domain.get(), p.info.get(), endpoint_.out(), nullptr); s != 0)
      return refused(p, "fi_endpoint", s);
  }
  if (!shm_name.empty()) {
    auto full = std::string(shm_prefix) + shm_name;
    if (int s = fi_setname(&endpoint_->fid, full.data(), full.size() + 1); s != 0)
      return refused(p, "fi_setname", s);
  }
  if (int s = fi_ep_bind(endpoint_.get(), &addresses_->fid, 0); s != 0) return refused(p, "fi_ep_bind", s);
  if (int s = fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV); s != 0)
    return refused(p, "fi_ep_bind", s);
  if (int s = fi_enable(endpoint_.get()); s != 0) return refused(p, "fi_enable", s);
  if (!shm_name.empty()) {
    shm_name_ = shm_name;
    enter_neighbour(shm_name);
    own_lock_ = shm_lock(shm_name);
  }
  return {};
}

endpoint::~endpoint() {
  regions_.clear();
  endpoint_.reset();
  queue_.reset();
  addresses_.reset();
}

expected<std::vector<std::uint8_t>> endpoint::address() const {
  std::vector<std::uint8_t> result(256);
  std::size_t size = result.size();
  if (int s = fi_getname(&endpoint_->fid, result.data(), &size); s != 0)
    return refused(*provider_, "fi_getname", s);
  result.resize(size);
  return result;
}

expected<remote_region> endpoint::add_region(std::byte* base, std::uint64_t bytes) {
  const auto& caps = provider_->caps;
  handle<fid_mr> region;
  int status = -FI_ENOKEY;
  for (int i = 0; i < key_attempts && status == -FI_ENOKEY; ++i)
    status = fi_mr_reg(provider_->domain.get(), base, bytes, FI_REMOTE_WRITE | FI_WRITE, 0,
                       random_bits() & caps.key_mask, 0, region.out(), nullptr);
  if (status != 0) return refused(*provider_, "fi_mr_reg", status);
  const remote_region result{fi_mr_key(region.get()),
                             caps.virtual_addresses ? reinterpret_cast<std::uintptr_t>(base) : 0, bytes};
  regions_.push_back(std::move(region));
  return result;
}

void* endpoint::descriptor(std::size_t index) const {
  return fi_mr_desc(regions_[index].get());
}

expected<void> endpoint::connect(std::span<const std::uint8_t> address) {
  if (auto ok = check_address(*provider_, address); !ok) return ok;
  if (!shm_name_.empty()) {
    peer_shm_name_.assign(address.begin() + shm_prefix.size(), address.end() - 1);
    if (!link_neighbours(shm_name_, peer_shm_name_))
      return fail(errc::peer_gone, "shm: the peer's endpoint was closed: " + peer_shm_name_);
  }
  const int inserted = fi_av_insert(addresses_.get(), address.data(), 1, &peer_address_, 0, nullptr);
  if (inserted != 1) {
    peer_address_ = FI_ADDR_NOTAVAIL;
    return refused(*provider_, "fi_av_insert", inserted < 0 ? inserted : -FI_EADDRNOTAVAIL);
  }
  if (peer_shm_name_.empty()) return {};
  // Names are never used twice: a file that is there now was there when it was mapped. Without that mapping
  // libfabric 1.17 would read the greeting that the peer left in our queue and follow a null pointer.
  if (access(shm_path(peer_shm_name_).c_str(), F_OK) != 0) {
    peer_address_ = FI_ADDR_NOTAVAIL;
    return fail(errc::peer_gone, "shm: the peer has closed its endpoint: " + peer_shm_name_);
  }
  peer_lock_ = shm_lock(peer_shm_name_);
  return {};
}

std::int64_t endpoint::post_receive(std::span<std::byte> buffer, operation& op) {
  return fi_recv(endpoint_.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &op.context);
}

std::int64_t endpoint::post_send(std::span<const std::byte> frame, operation& op) {
  return fi_send(endpoint_.get(), frame.data(), frame.size(), nullptr, peer_address_, &op.context);
}

std::int64_t endpoint::post_write(const std::byte* from, std::uint64_t bytes, std::uint64_t remote_address,
                                  std::uint64_t key, void* descriptor, operation& op) {
  const iovec local{const_cast<std::byte*>(from), bytes};
  const fi_rma_iov remote{remote_address, bytes, key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &descriptor;
  message.iov_count = 1;
  message.addr = peer_address_;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &op.context;
  return fi_writemsg(endpoint_.get(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

bool endpoint::read_error(completion& out) {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1) return false;
  out = {};
  out.op = static_cast<operation*>(entry.op_context);
  out.failure = entry.err != 0 ? entry.err : FI_EOTHER;
  out.text = fmt::format("{} (provider: {})", describe_failure("completion", out.failure),
                         fi_cq_strerror(queue_.get(), entry.prov_errno, entry.err_data, nullptr, 0));
  return true;
}

std::size_t endpoint::poll(std::span<completion> out) {
  std::array<fi_cq_msg_entry, 32> entries;
  const auto wanted = std::min(out.size(), entries.size());
  const auto n = fi_cq_read(queue_.get(), entries.data(), wanted);
  if (n == -FI_EAVAIL) return read_error(out[0]) ? 1 : 0;
  if (n <= 0) return 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    out[i] = {static_cast<operation*>(entries[i].op_context), entries[i].len, 0, {}};
  return static_cast<std::size_t>(n);
}

void endpoint::break_locks() {
  broken_ = true;
  own_lock_.break_open();
  peer_lock_.break_open();
}

}  // namespace handoff::transport::fabric
