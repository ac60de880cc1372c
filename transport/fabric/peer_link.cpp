#include "transport/fabric/peer_link.hpp"

#include "transport/fabric/shm_files.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <rdma/fi_errno.h>

namespace handoff::transport::fabric {

namespace {

constexpr int poll_rounds = 4;  // of 32 completions, before the next peer has its turn
constexpr int frame_burst = 16;
/// How long a side without a wait descriptor polls after it heard that writes are on their way, and how often
/// it is told so.
constexpr auto hot_for = std::chrono::milliseconds(5);
constexpr auto tell_writing = std::chrono::milliseconds(2);
constexpr auto quiet_after = std::chrono::milliseconds(1);

}  // namespace

peer_link::peer_link(peer_id peer, session_id session, const settings& limits, endpoint_ptr e,
                     std::shared_ptr<peer_state> state, counters& count)
    : peer_(peer),
      session_(session),
      limits_(limits),
      count_(count),
      state_(std::move(state)),
      frames_(session, count),
      writes_(limits, count),
      silence_(limits.silence_after, time_point::max()),
      heartbeat_(limits.heartbeat_interval, time_point::min()),
      endpoint_(std::move(e)) {
  for (std::size_t i = 0; i < nonce_.size(); i += 8) {
    const auto bits = random_bits();
    std::memcpy(nonce_.data() + i, &bits, 8);
  }
  probe_write_.kind = operation::kind_t::probe_write;
  count_.peers.add();
}

peer_link::~peer_link() {
  if (endpoint_) count_.registrations.sub(endpoint_->region_count());
  count_.peers.sub();
}

std::string peer_link::name() const {
  return fmt::format("peer {} session {}", peer_.value, session_.value);
}

expected<endpoint_record> peer_link::open(const provider& p, std::span<const memory_region> regions) {
  endpoint_record record;
  record.provider = p.name;
  record.host_id = limits_.host_id;
  auto probe = endpoint_->add_region(probe_memory_.data(), probe_memory_.size());
  if (!probe) return tl::unexpected(probe.error());
  record.probe = *probe;
  for (const auto& region : regions) {
    const bool shown = region.shown && region.base != nullptr;
    record.regions.emplace_back();
    local_.push_back({region.base, nullptr});
    if (!shown) continue;
    auto registered = endpoint_->add_region(region.base, region.bytes);
    if (!registered) return tl::unexpected(registered.error());
    record.regions.back() = *registered;
    local_.back().descriptor = endpoint_->descriptor(endpoint_->region_count() - 1);
  }
  count_.registrations.add(endpoint_->region_count());
  auto address = endpoint_->address();
  if (!address) return tl::unexpected(address.error());
  record.address = std::move(*address);
  if (auto s = frames_.post_receives(*endpoint_); s != 0 && s != -FI_EAGAIN)
    return fail(errc::transport_provider, fmt::format("{}: {}", p.name, describe_failure("fi_recv", s)));
  return record;
}

expected<void> peer_link::connect(const endpoint_record& remote, time_point now) {
  if (phase_ != phase::opened) return fail(errc::invalid_argument, name() + " is connected already");
  if (auto ok = endpoint_->connect(remote.address); !ok) return ok;
  remote_ = remote.regions;
  probe_target_ = remote.probe;
  phase_ = phase::connecting;
  probe_deadline_ = now + limits_.probe_timeout;
  return {};
}

void peer_link::submit(transfer t, time_point now) {
  writes_.add(std::move(t), now);
  last_moved_ = now;
  if (phase_ == phase::failed) writes_.stop(error{errc::peer_gone, name() + " failed before", {}});
}

void peer_link::send(outgoing_frame frame, time_point now) {
  frames_.push(std::move(frame));
  last_moved_ = now;
  if (phase_ == phase::failed) frames_.drop_queued(*state_);
}

void peer_link::close(bool fenced, std::vector<event>& out) {
  state_->ready = false;
  phase_ = phase::failed;
  count_.registrations.sub(endpoint_->region_count());
  endpoint_.reset();
  frames_.drop_queued(*state_);
  const auto why = fenced ? error{errc::transport_fenced, name() + " was fenced here", {}}
                          : error{errc::peer_gone, name() + " was closed", {}};
  writes_.end_all(why, out);
  state_->closed = true;
  out.emplace_back(peer_closed{peer_, session_, fenced});
}

void peer_link::fail_link(errc code, const std::string& why, std::vector<event>& out) {
  if (phase_ == phase::failed) return;
  if (phase_ == phase::connecting) code = errc::transport_probe;
  state_->ready = false;
  phase_ = phase::failed;
  probe_deadline_ = time_point::max();
  const auto text = fmt::format("{}: {}", name(), why);
  writes_.stop(error{errc::peer_gone, text, {}});
  frames_.drop_queued(*state_);
  out.emplace_back(peer_failed{peer_, session_, error{code, text, {}}});
}

bool peer_link::step(time_point now, std::vector<event>& out) {
  bool moved = false;
  if (endpoint_->approachable()) moved |= poll(now, out);
  check_timers(now, out);
  if (endpoint_->broken())
    fail_link(errc::transport_completion, "its process stopped while it held the provider's lock", out);
  if (endpoint_->approachable()) moved |= post(now, out);
  writes_.settle(frames_, out);
  if (moved) last_moved_ = now;
  if (moved && !writes_.empty()) hot_until_ = now + quiet_after;
  return moved;
}

bool peer_link::quiet(time_point now) const {
  return now - last_moved_ > quiet_after && !backlog_ && due() > now;
}

// -- completions -----------------------------------------------------------------------------------

bool peer_link::poll(time_point now, std::vector<event>& out) {
  std::array<completion, 32> found;
  bool moved = false;
  for (int round = 0; round < poll_rounds && endpoint_->approachable(); ++round) {
    const auto n = endpoint_->poll(found);
    for (std::size_t i = 0; i < n; ++i) take(found[i], now, out);
    moved |= n > 0;
    if (n == 0) break;
  }
  return moved;
}

void peer_link::take(const completion& c, time_point now, std::vector<event>& out) {
  if (c.op == nullptr) {  // the provider says that something failed, not what
    fail_link(errc::transport_completion, c.text, out);
    return;
  }
  switch (c.op->kind) {
    case operation::kind_t::receive:
      if (c.failure == 0) take_frame(c, now, out);
      break;
    case operation::kind_t::send:
      frames_.sent(*c.op);
      break;
    case operation::kind_t::write:
      writes_.completed(*c.op, c.failure == 0 ? error{} : error{errc::transport_completion, c.text, {}});
      if (c.failure == 0) heard(now, out);
      break;
    case operation::kind_t::probe_write:
      if (probe_ == probe_step::written) probe_ = probe_step::ask;
      break;
  }
  if (c.failure != 0) fail_link(errc::transport_completion, c.text, out);
}

void peer_link::take_frame(const completion& c, time_point now, std::vector<event>& out) {
  auto frame = frames_.take(*c.op, c.bytes);
  if (!frame) {
    fail_link(frame.error().code, frame.error().detail, out);
    return;
  }
  if (!*frame || phase_ == phase::failed) return;
  auto& f = **frame;
  heard(now, out);
  if ((f.flags & flag_writing) != 0) hot_until_ = now + hot_for;
  switch (f.type) {
    case message_type::probe:
      echo_due_ = true;
      break;
    case message_type::probe_echo:
      if (probe_ != probe_step::asked) break;
      if (f.payload.size() == nonce_.size() && std::equal(nonce_.begin(), nonce_.end(), f.payload.begin())) {
        probe_ = probe_step::confirmed;
        maybe_ready(now, out);
      } else {
        fail_link(errc::transport_probe, "it read back other bytes than were written", out);
      }
      break;
    case message_type::heartbeat:
    case message_type::credit:
      break;
    default:
      count_.frames_received.add();
      out.emplace_back(frame_received{peer_, session_, f.type, std::move(f.payload)});
  }
}

void peer_link::heard(time_point now, std::vector<event>& out) {
  if (silence_.heard(now)) out.emplace_back(peer_heard{peer_, session_});
}

void peer_link::maybe_ready(time_point now, std::vector<event>& out) {
  if (phase_ != phase::connecting || probe_ != probe_step::confirmed || !echoed_) return;
  phase_ = phase::ready;
  probe_deadline_ = time_point::max();
  silence_ = silence_watch(limits_.silence_after, now);
  heartbeat_.sent(now);
  state_->ready = true;
  out.emplace_back(peer_ready{peer_, session_});
}

// -- timers ----------------------------------------------------------------------------------------

void peer_link::check_timers(time_point now, std::vector<event>& out) {
  writes_.expire(now, out);
  if (now >= probe_deadline_)
    fail_link(
        errc::transport_probe,
        fmt::format("no connection within {} ms (settings: probe_timeout)",
                    std::chrono::duration_cast<std::chrono::milliseconds>(limits_.probe_timeout).count()),
        out);
  if (phase_ != phase::ready) return;
  if (auto silent_for = silence_.check(now)) out.emplace_back(peer_silent{peer_, session_, *silent_for});
}

time_point peer_link::due() const {
  auto result = std::min(writes_.due(), probe_deadline_);
  if (phase_ == phase::ready) result = std::min({result, silence_.due(), heartbeat_.due()});
  return result;
}

// -- posts -----------------------------------------------------------------------------------------

bool peer_link::post(time_point now, std::vector<event>& out) {
  backlog_ = false;
  if (phase_ == phase::failed) return false;
  if (auto s = frames_.post_receives(*endpoint_); s == -FI_EAGAIN)
    backlog_ = true;
  else if (s != 0)
    fail_link(errc::transport_post, describe_failure("fi_recv", s), out);
  bool moved = false;
  if (phase_ == phase::connecting) moved |= post_probe(out);
  maybe_ready(now, out);
  if (phase_ != phase::ready) return moved;
  moved |= post_own_frames(now, out);
  if (phase_ != phase::ready) return moved;
  switch (writes_.post(*endpoint_, local_, remote_)) {
    case write_queue::outcome::moved:
      moved = true;
      break;
    case write_queue::outcome::later:
      backlog_ = true;
      break;
    case write_queue::outcome::failed:
      fail_link(errc::transport_post, writes_.failure(), out);
      break;
    case write_queue::outcome::idle:
      break;
  }
  return moved;
}

bool peer_link::post_probe(std::vector<event>& out) {
  bool moved = false;
  if (probe_ == probe_step::write) {
    const auto s = endpoint_->post_write(nonce_.data(), nonce_.size(), probe_target_.base, probe_target_.key,
                                         nullptr, probe_write_);
    if (s != 0 && s != -FI_EAGAIN) fail_link(errc::transport_probe, describe_failure("fi_writemsg", s), out);
    if (s == 0) probe_ = probe_step::written;
    moved |= s == 0;
  }
  auto result = frame_channel::outcome::no_credit;
  if (probe_ == probe_step::ask) {
    result = frames_.send(*endpoint_, frame_class::heartbeat, message_type::probe, nonce_, 0);
    if (result == frame_channel::outcome::sent) probe_ = probe_step::asked;
    moved |= result == frame_channel::outcome::sent;
  }
  if (echo_due_ && result != frame_channel::outcome::failed) {
    const auto seen = std::span(probe_memory_).first(nonce_.size());
    result = frames_.send(*endpoint_, frame_class::heartbeat, message_type::probe_echo, seen, 0);
    if (result == frame_channel::outcome::sent) {
      echo_due_ = false;
      echoed_ = true;
      moved = true;
    }
  }
  if (result == frame_channel::outcome::failed) fail_link(errc::transport_probe, frames_.failure(), out);
  return moved;
}

bool peer_link::post_own_frames(time_point now, std::vector<event>& out) {
  using outcome = frame_channel::outcome;
  bool moved = false;
  auto result = outcome::sent;
  for (int i = 0; i < frame_burst && result == outcome::sent; ++i) {
    result = frames_.send_next(*endpoint_, flags(), *state_);
    moved |= result == outcome::sent;
  }
  if (result == outcome::no_credit && frames_.flow().owes_frame()) {
    result = frames_.send(*endpoint_, frame_class::credit, message_type::credit, {}, flags());
    moved |= result == outcome::sent;
  }
  if (moved) heartbeat_.sent(now);
  // Where the peer has no descriptor to wait on, it hears early and often that writes come.
  const bool tell = flags() != 0 && endpoint_->wait_descriptor() < 0 && now >= tell_writing_at_;
  if (result != outcome::later && result != outcome::failed && (tell || now >= heartbeat_.due())) {
    result = frames_.send(*endpoint_, frame_class::heartbeat, message_type::heartbeat, {}, flags());
    heartbeat_.sent(now);  // without a credit the next interval tries again
    if (tell) tell_writing_at_ = now + tell_writing;
    moved |= result == outcome::sent;
  }
  if (result == outcome::later) backlog_ = true;
  if (result == outcome::failed) fail_link(errc::transport_post, frames_.failure(), out);
  return moved;
}

}  // namespace handoff::transport::fabric
