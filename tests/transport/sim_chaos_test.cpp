// Everything at once, seeded: three processes, links that do all that they can, processes that stop, peers
// that are fenced and connected again. What must hold whatever happens is in `check_end`.
#include "tests/transport/contract/scene.hpp"
#include "transport/sim/sim_world.hpp"

#include <array>
#include <map>
#include <random>

using namespace handoff;
using namespace handoff::transport;
using handoff::transport::contract::fill;
using handoff::transport::contract::first_difference;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t processes = 3;
constexpr std::uint64_t slot_bytes = 3000, slots = 64;

/// Looks at every event as it comes.
struct observer final : event_sink {
  void on_events(std::span<event> events) override {
    for (event& e : events) std::visit([this](auto& x) { on(x); }, e);
  }
  void on(peer_ready& e) { ready[e.peer.value] = true; }
  void on(peer_failed& e) { ready[e.peer.value] = false; }
  void on(peer_silent&) {}
  void on(peer_heard&) {}
  void on(peer_closed& e) {
    ready[e.peer.value] = false;
    ++closed;
  }
  void on(frame_received& e) {
    ++frames;
    CHECK(e.session.value == session[e.peer.value]);
  }
  void on(transfer_done& e) {
    CHECK_MESSAGE(open.erase(e.id.value) == 1, "transfer " << e.id.value << " ended twice");
    if (e.result.code == errc::ok) {
      CHECK(e.drained);
      if (on_ok) on_ok(e);
    }
    ++ended[e.result.code];
    undrained += !e.drained;
  }

  std::function<void(const transfer_done&)> on_ok;
  std::array<bool, processes> ready{};
  std::array<std::uint32_t, processes> session{};
  std::map<std::uint64_t, bool> open;
  std::map<errc, std::size_t> ended;
  std::size_t frames = 0, closed = 0, undrained = 0;
};

class chaos {
 public:
  explicit chaos(std::uint64_t seed) : random_(seed), world_(seed) {
    settings limits;
    limits.write_bytes_max = 1000;
    limits.window = 8;
    for (std::size_t i = 0; i < processes; ++i) {
      memory_[i].resize(slot_bytes * slots);
      REQUIRE(world_.add(limits, seen_[i])
                  .register_region({memory_[i].data(), memory_[i].size(), memory_kind::host}));
      seen_[i].on_ok = [this](const transfer_done& e) { check_delivered(e); };
    }
    for (std::size_t i = 0; i < processes; ++i)
      for (std::size_t j = 0; j < i; ++j) reconnect(i, j);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      world_.advance(duration(random_() % 300'000));
    }
  }

  void check_end() {
    for (std::size_t i = 0; i < processes; ++i) world_.thaw(i);
    world_.set_links({});
    world_.advance(20s);
    for (std::size_t i = 0; i < processes; ++i) {
      CHECK(seen_[i].open.empty());
      CHECK(world_.at(i).current_status().transfers_active == 0);
      for (std::size_t j = 0; j < processes; ++j)
        if (i != j) world_.at(i).fence({static_cast<std::uint32_t>(j)});
    }
    world_.advance(1s);
    for (std::size_t i = 0; i < processes; ++i) {
      const status s = world_.at(i).current_status();
      CHECK(s.peers + s.registrations + s.writes_in_flight + s.frames_queued == 0);
    }
  }

  const fault_counts& faults() const { return world_.counts(); }
  const std::array<observer, processes>& seen() const { return seen_; }

 private:
  struct delivery {
    std::size_t to = 0, slot = 0;
    std::uint64_t seed = 0, bytes = 0;
  };

  void reconnect(std::size_t i, std::size_t j) {
    const session_id session{++next_session_};
    const auto peer = [](std::size_t x) { return peer_id{static_cast<std::uint32_t>(x)}; };
    world_.at(i).fence(peer(j));
    world_.at(j).fence(peer(i));
    world_.advance(100us);  // peer_closed of both
    free_slots(i, j);
    free_slots(j, i);
    seen_[i].session[j] = seen_[j].session[i] = session.value;
    const auto a = world_.at(i).open_peer(peer(j), session, "sim").value();
    const auto b = world_.at(j).open_peer(peer(i), session, "sim").value();
    REQUIRE(world_.at(i).connect_peer(peer(j), b));
    REQUIRE(world_.at(j).connect_peer(peer(i), a));
  }

  /// The target has fenced: what that writer left undrained can land no more, so the slots may be reused.
  void free_slots(std::size_t from, std::size_t to) {
    std::erase_if(busy_, [&](const auto& b) { return b.second == std::pair{from, to}; });
  }

  void step() {
    const std::size_t i = random_() % processes, j = (i + 1 + random_() % (processes - 1)) % processes;
    switch (random_() % 40) {
      case 0:
        return change_link(i, j);
      case 1:
        return world_.freeze(i);
      case 2:
      case 3:
        for (std::size_t x = 0; x < processes; ++x) world_.thaw(x);
        return;
      case 4:
        for (std::size_t x = 0; x < processes; ++x) world_.thaw(x);
        world_.advance(0ns);
        return reconnect(i, j);
      default:
        if (seen_[i].ready[j]) return random_() % 2 == 0 ? send(i, j) : submit(i, j);
    }
  }

  void change_link(std::size_t i, std::size_t j) {
    link_faults f;
    const auto maybe = [&](double most) {
      return random_() % 2 == 0 ? 0.0 : most * static_cast<double>(random_() % 1000) / 1000;
    };
    f.slow = maybe(0.2);
    f.frame_loss = maybe(0.3);
    f.frame_duplication = maybe(0.3);
    f.frame_reordering = maybe(0.3);
    f.post_refused = maybe(0.5);
    f.post_failed = maybe(0.02);
    f.completion_failed = maybe(0.02);
    f.completion_lost = maybe(0.01);
    world_.link(i, j) = f;
  }

  void send(std::size_t i, std::size_t j) {
    const auto sent = world_.at(i).send_frame({static_cast<std::uint32_t>(j)},
                                              {message_type::publish, {}, random_() % 10 == 0});
    if (!sent) CHECK((sent.error().code == errc::transport_full || sent.error().code == errc::peer_gone));
  }

  void submit(std::size_t i, std::size_t j) {
    const std::size_t slot = random_() % slots;
    const auto free = [&](std::size_t process) { return !busy_.contains({process, slot}); };
    if (!free(i) || !free(j)) return;
    transfer t;
    t.id = {++next_transfer_};
    t.peer = {static_cast<std::uint32_t>(j)};
    const std::uint64_t bytes = random_() % (slot_bytes + 1);
    fill(std::span(memory_[i]).subspan(slot * slot_bytes, bytes), t.id.value);
    for (std::uint64_t done = 0; done < bytes; done += 700)
      (done > bytes / 2 ? t.last_blocks : t.blocks)
          .push_back(contract::copy(slot * slot_bytes + done, slot * slot_bytes + done,
                                    std::min<std::uint64_t>(700, bytes - done)));
    t.timeout = 1ms + duration(random_() % 50'000'000);
    if (random_() % 2 == 0) t.notify = outgoing_frame{message_type::room_done, {}, false};
    const auto id = t.id.value;
    if (!world_.at(i).submit(std::move(t))) return;
    seen_[i].open[id] = true;
    busy_[{i, slot}] = busy_[{j, slot}] = {i, j};
    deliveries_[id] = {j, slot, id, bytes};
  }

  /// `ok` means that every byte is there now, and the slot is free.
  void check_delivered(const transfer_done& e) {
    const delivery& d = deliveries_.at(e.id.value);
    CHECK(e.bytes == d.bytes);
    CHECK(first_difference(std::span(memory_[d.to]).subspan(d.slot * slot_bytes, d.bytes), d.seed) ==
          d.bytes);
    std::erase_if(busy_, [&](const auto& b) { return b.first.second == d.slot && b.second.second == d.to; });
  }

  std::mt19937_64 random_;
  std::array<std::vector<std::byte>, processes> memory_;
  std::array<observer, processes> seen_;
  sim_world world_;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>
      busy_;  // (process, slot) -> (from, to)
  std::map<std::uint64_t, delivery> deliveries_;
  std::uint64_t next_transfer_ = 0;
  std::uint32_t next_session_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("only sim");

TEST_CASE("whatever goes wrong, transfers end once, ok means delivered, and nothing is left behind") {
  std::map<std::string, std::uint64_t> sum;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    chaos c(seed);
    c.run(3000);
    c.check_end();
    const fault_counts& f = c.faults();
    sum["frames lost"] += f.frames_lost;
    sum["frames duplicated"] += f.frames_duplicated;
    sum["frames reordered"] += f.frames_reordered;
    sum["frames late"] += f.frames_late;
    sum["posts refused"] += f.posts_refused;
    sum["posts failed"] += f.posts_failed;
    sum["completions failed"] += f.completions_failed;
    sum["completions lost"] += f.completions_lost;
    sum["writes to nobody"] += f.writes_to_nobody;
    for (const observer& o : c.seen()) {
      sum["frames received"] += o.frames;
      sum["peers closed"] += o.closed;
      sum["transfers undrained"] += o.undrained;
      for (auto [code, n] : o.ended) sum["transfers " + std::string(to_string(code))] += n;
    }
  }
  for (const auto& count : sum) {
    MESSAGE(count.first << ": " << count.second);
    CHECK_MESSAGE(count.second > 0, count.first);
  }
  CHECK(sum["transfers ok"] > 1000);
}

TEST_SUITE_END();
