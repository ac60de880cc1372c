#include "tests/transport/provider_facts/raw.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace facts {

namespace {

using clock = std::chrono::steady_clock;

void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "%s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  _exit(3);
}

std::string shm_name() {
  static int next = 0;
  return "fi_shm://handoff-facts-" + std::to_string(getpid()) + "-" + std::to_string(next++);
}

}  // namespace

side::side(const std::string& provider, bool wait_descriptor) : provider_(provider) {
  setenv("FI_SHM_DISABLE_CMA", "1", 0);
  fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  const bool tcp = provider == "tcp";
  must(fi_getinfo(FI_VERSION(1, 14), tcp ? "127.0.0.1" : nullptr, tcp ? "0" : nullptr, tcp ? FI_SOURCE : 0,
                  hints, &info_),
       "fi_getinfo");
  fi_freeinfo(hints);
  virtual_addresses_ = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  must(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  must(fi_domain(fabric, info_, &domain, nullptr), "fi_domain");
  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_CONTEXT;
  attributes.wait_obj = wait_descriptor ? FI_WAIT_FD : FI_WAIT_NONE;
  must(fi_cq_open(domain, &attributes, &queue, nullptr), "fi_cq_open");
}

side::port side::add() {
  port p;
  fi_av_attr attributes{};
  must(fi_av_open(domain, &attributes, &p.addresses, nullptr), "fi_av_open");
  must(fi_endpoint(domain, info_, &p.endpoint, nullptr), "fi_endpoint");
  if (provider_ == "shm") {
    auto name = shm_name();
    must(fi_setname(&p.endpoint->fid, name.data(), name.size() + 1), "fi_setname");
  }
  must(fi_ep_bind(p.endpoint, &p.addresses->fid, 0), "fi_ep_bind");
  must(fi_ep_bind(p.endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  must(fi_enable(p.endpoint), "fi_enable");
  return p;
}

fid_mr* side::expose(void* base, std::size_t bytes, target_card& card) {
  fid_mr* region = nullptr;
  must(fi_mr_reg(domain, base, bytes, FI_REMOTE_WRITE, 0, 0x5eed, 0, &region, nullptr), "fi_mr_reg");
  card.key = fi_mr_key(region);
  card.base = virtual_addresses_ ? reinterpret_cast<std::uintptr_t>(base) : 0;
  return region;
}

void side::introduce(const port& p, target_card& card) {
  card.address_bytes = card.address.size();
  must(fi_getname(&p.endpoint->fid, card.address.data(), &card.address_bytes), "fi_getname");
  card.ready = 1;
}

fi_addr_t side::port::insert(const target_card& target) {
  fi_addr_t result = FI_ADDR_NOTAVAIL;
  if (fi_av_insert(addresses, target.address.data(), 1, &result, 0, nullptr) != 1) _exit(4);
  return result;
}

int side::poll() {
  std::array<fi_cq_entry, 16> entries;
  const auto n = fi_cq_read(queue, entries.data(), entries.size());
  if (n > 0) {
    completed += static_cast<int>(n);
    return static_cast<int>(n);
  }
  if (n != -FI_EAVAIL) return 0;
  fi_cq_err_entry failed{};
  if (fi_cq_readerr(queue, &failed, 0) == 1) ++failures;
  return 1;
}

long write_to(const side::port& p, fi_addr_t to, const void* from, std::size_t bytes,
              const target_card& target, std::uint64_t key, std::uint64_t flags) {
  static fi_context2 contexts[64];
  static std::size_t next = 0;
  const iovec local{const_cast<void*>(from), bytes};
  const fi_rma_iov remote{target.base, bytes, key};
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.iov_count = 1;
  message.addr = to;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &contexts[next++ % 64];
  return fi_writemsg(p.endpoint, &message, flags | FI_COMPLETION);
}

long retry(side& s, int limit_ms, const std::function<long()>& post) {
  const auto end = clock::now() + std::chrono::milliseconds(limit_ms);
  long status = 0;
  while ((status = post()) == -FI_EAGAIN && clock::now() < end) s.poll();
  return status;
}

bool poll_until(side& s, int limit_ms, const std::function<bool()>& predicate) {
  const auto end = clock::now() + std::chrono::milliseconds(limit_ms);
  while (!predicate()) {
    if (clock::now() >= end) return false;
    s.poll();
  }
  return true;
}

scene::scene() {
  void* p = mmap(nullptr, sizeof(shared_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("mmap");
  page_ = new (p) shared_page;
}

scene::~scene() {
  for (std::size_t i = 0; i < count_; ++i) {
    if (!ended_[i]) {
      kill(children_[i], SIGKILL);
      waitpid(children_[i], nullptr, 0);
    }
    for (int k = 0; k < 4; ++k)  // children close nothing
      unlink(("/dev/shm/handoff-facts-" + std::to_string(children_[i]) + "-" + std::to_string(k)).c_str());
  }
  munmap(page_, sizeof(shared_page));
}

pid_t scene::start(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    body();
    _exit(0);
  }
  children_.at(count_++) = child;
  return child;
}

pid_t scene::start_target(std::size_t index, const std::string& provider) {
  auto& card = page_->targets.at(index);
  const pid_t child = start([&] {
    side s(provider);
    auto port = s.add();
    auto* region = s.expose(page_->memory.data(), memory_bytes, card);
    s.introduce(port, card);
    for (int obeyed = 0;;) {
      const int command = card.command;
      if (command != obeyed) {
        if (command == close_region) fi_close(&region->fid);
        card.obeyed = obeyed = command;
      }
      if (command == look_away) {
        usleep(200);
        continue;
      }
      s.poll();
      card.polls.fetch_add(1);
    }
  });
  if (!until([&] { return card.ready == 1; })) throw std::runtime_error("a target did not start");
  return child;
}

bool scene::wait(pid_t child, int limit_ms) {
  int status = 0;
  if (!until([&] { return waitpid(child, &status, WNOHANG) == child; }, limit_ms)) return false;
  for (std::size_t i = 0; i < count_; ++i)
    if (children_[i] == child) ended_[i] = true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool scene::until(const std::function<bool()>& predicate, int limit_ms) {
  const auto end = clock::now() + std::chrono::milliseconds(limit_ms);
  while (!predicate()) {
    if (clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

}  // namespace facts
