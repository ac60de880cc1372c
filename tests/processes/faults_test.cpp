// Prefill, decode and bootstrap processes killed, and stopped and continued, in each named state of their
// machines, with rooms under way. What must hold stands in `fault_run`.
#include "tests/processes/cluster.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace handoff::test {
namespace {

using namespace replay;

constexpr std::uint64_t seed = 20260301;
/// Within which rooms end at the other side.
constexpr milliseconds room_bound{3'000};
/// How long the bystanders' rooms are counted before the fault, and at least during it.
constexpr std::uint64_t window_ns = 400'000'000;
constexpr milliseconds patience{20'000};

struct fault {
  std::string victim, state;
  bool kill = false;  ///< else SIGSTOP, and SIGCONT once the others have ended their rooms
};

double ms(std::uint64_t from_ns, std::uint64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e6;
}

class fault_run {
 public:
  fault_run(cluster& c, fault f) : c_(c), f_(std::move(f)) {
    survivor_ = f_.victim == "decode-1" ? "prefill-1" : "decode-1";
    freezes_survivor_ = f_.state == "peer.suspect" || f_.state == "peer.gone";
    on_connect_ = f_.state == "peer.connecting" || f_.state == "peer.ready";
    // Bystanders: the survivor with a third engine, or, where the survivor is frozen for a while, two others.
    source_ = f_.victim == "decode-1" && !freezes_survivor_ ? "prefill-1" : "prefill-2";
    sink_ = f_.victim == "decode-1" || freezes_survivor_ ? "decode-2" : "decode-1";
  }

  void go() {
    const auto title = fmt::format("{} {} in {}", f_.victim, f_.kill ? "killed" : "stopped", f_.state);
    CAPTURE(title);
    restart_with_breakpoint();
    start_streams();
    meet();
    others_end();
    revive();
    settle();
    MESSAGE(line_);
  }

 private:
  std::string reporter() const {
    return f_.victim != "bootstrap"             ? f_.victim
           : f_.state.rfind("receiver", 0) == 0 ? "decode-1"
                                                : "prefill-1";
  }

  /// The target room is the first that is started once everything is warm; warming takes fewer rooms.
  void restart_with_breakpoint() {
    const auto name = reporter();
    target_ = 1'000'000 + c_.next_room();
    worker_faults faults;
    faults.breakpoint = f_.state.rfind("peer", 0) == 0 ? f_.state : fmt::format("{}:{}", f_.state, target_);
    faults.breakpoint_action = f_.victim == "bootstrap" ? "report" : f_.kill ? "kill" : "stop";
    c_.end(name);
    c_.start_engine(name, faults);
    if (on_connect_) return;
    c_.warm_all(name);
    c_.quiet();
    if (f_.victim != "bootstrap") c_.mark(name);
  }

  void start_streams() {
    c_.rooms.clear();  // those that met a registration of the old life are none of this fault
    c_.stream(source_, sink_, 2);
    if (!on_connect_) c_.stream("prefill-1", "decode-1", 2);
    const auto start = now_ns();
    c_.run([&] { return now_ns() - start >= window_ns; }, patience);
    before_ = static_cast<double>(c_.successes(source_, sink_, start)) * 1e9 /
              static_cast<double>(now_ns() - start);
    c_.group.remember_shm(f_.victim);
  }

  /// Leads the victim's machines into the state.
  void meet() {
    auto& e = c_.group[reporter()];
    const auto met = [&] { return e.breakpoint_ns != 0; };
    if (f_.state == "sender.failed" || f_.state == "receiver.failed") {
      const bool sends = f_.state == "sender.failed";
      c_.start_room("prefill-1", "decode-1", sends, !sends, target_);
      const auto abort = make_line(kind::abort, room_order{target_, 0, ""});
      REQUIRE(c_.run(
          [&] {
            c_.group.send(e.setup.name, abort);
            return met();
          },
          patience));
    } else if (freezes_survivor_) {
      c_.group.signal(survivor_, SIGSTOP);
      REQUIRE(c_.run(met, patience));
      c_.group.signal(survivor_, SIGCONT);
    } else {
      on_connect_ ? c_.stream("prefill-1", "decode-1", 2)
                  : (void)c_.start_room("prefill-1", "decode-1", true, true, target_);
      REQUIRE_MESSAGE(c_.run(met, patience), c_.failures("prefill-1", "decode-1"));
    }
    met_ns_ = e.breakpoint_ns;
    if (f_.victim == "bootstrap") {
      c_.group.signal("bootstrap", f_.kill ? SIGKILL : SIGSTOP);
      met_ns_ = now_ns();
    } else {
      c_.stop_stream("prefill-1", "decode-1");
      if (freezes_survivor_) met_ns_ = now_ns();
    }
  }

  /// The survivor's rooms with the victim end in time and name it; the bystanders' go on.
  void others_end() {
    const auto begun_ns = now_ns();
    const bool registry = f_.victim == "bootstrap";
    const auto affected = registry ? std::vector<std::uint64_t>{} : c_.open_at(survivor_);
    std::vector<std::uint64_t> with_victim;
    for (auto id : affected)
      if (c_.rooms[id].source == f_.victim || c_.rooms[id].sink == f_.victim) with_victim.push_back(id);
    const auto ended = [&] {
      return std::all_of(with_victim.begin(), with_victim.end(),
                         [&](auto id) { return c_.rooms[id].at(survivor_).has_value(); });
    };
    // Counted even when nothing is left to end: the others must not notice either.
    const bool in_time = c_.run(ended, room_bound + milliseconds(2'000));
    std::uint64_t last_ns = met_ns_;
    std::string example;
    for (auto id : with_victim) {
      const auto& end = c_.rooms[id].at(survivor_);
      REQUIRE_MESSAGE(end, "room ", id, " has not ended at ", survivor_);
      last_ns = std::max(last_ns, end->at_ns);
      if (end->outcome.failure.empty()) continue;
      example = end->outcome.failure + ": " + end->outcome.reason;
      const bool own_abort = id == target_ && f_.state.find(".failed") != std::string::npos;
      // A source whose sink died before it announced never heard of it.
      const bool unmet = f_.victim == "decode-1" && example.find("did not announce") != std::string::npos;
      unmet_ += unmet ? 1 : 0;
      CHECK_MESSAGE((own_abort || unmet || example.find(f_.victim) != std::string::npos), example);
    }
    CHECK(in_time);
    CHECK_MESSAGE(ms(met_ns_, last_ns) <= static_cast<double>(room_bound.count()), "rooms took too long");
    c_.run([&] { return now_ns() - begun_ns >= window_ns; }, patience);
    const auto during = static_cast<double>(c_.successes(source_, sink_, begun_ns)) * 1e9 /
                        static_cast<double>(now_ns() - begun_ns);
    CHECK_MESSAGE(during >= before_ / 4, during, " rooms/s during the fault, ", before_, " before");
    CHECK_MESSAGE(c_.failures(source_, sink_).empty(), c_.failures(source_, sink_));
    line_ = fmt::format(
        "{:<9} {} in {:<18} {} rooms ended at {} after {:>4.0f} ms; bystanders {:.0f} -> {:.0f} rooms/s; {}",
        f_.victim, f_.kill ? "killed " : "stopped", f_.state, with_victim.size(),
        registry ? "nobody" : survivor_, ms(met_ns_, last_ns), before_, during, example);
  }

  /// A new life, or the old one goes on; either way it is used again.
  void revive() {
    const auto from_ns = now_ns();
    if (f_.kill) {
      c_.bury(f_.victim);
      f_.victim == "bootstrap" ? c_.start_bootstrap() : c_.start_engine(f_.victim);
    } else {
      c_.group.signal(f_.victim, SIGCONT);
    }
    if (f_.victim == "bootstrap") {
      // None of its death may have reached a room; a new engine finds its peers only through it.
      c_.quiet();
      CHECK_MESSAGE(c_.failures("prefill-1", "decode-1").empty(), c_.failures("prefill-1", "decode-1"));
      c_.end("decode-1");
      c_.start_engine("decode-1");
    }
    c_.quiet();
    for (const auto* name : {"prefill-1", "decode-1"}) c_.warm_all(name);
    for (int i = 0; i < 3; ++i) c_.warm("prefill-1", "decode-1");
    line_ += fmt::format("; used again after {:.0f} ms", ms(from_ns, now_ns()));
  }

  /// Nobody holds anything of it, and nothing was written where no room was.
  void settle() {
    c_.quiet();
    std::vector<std::string> who{survivor_};
    if (!f_.kill && f_.victim != "bootstrap") who.push_back(f_.victim);
    for (const auto& name : who) {
      const auto s = c_.settle(name);
      for (const auto& text : s.leaks) CHECK_MESSAGE(false, name, " leaks: ", text);
      for (const auto& text : s.findings) CHECK_MESSAGE(false, name, " found: ", text);
      line_ += fmt::format("; {}: {} descriptors, {} registrations, {} peers, {} actors, {} maps", name,
                           s.counts.descriptors, s.counts.registrations, s.counts.peers, s.counts.actors,
                           s.counts.maps);
    }
    for (const auto& room : c_.rooms) {
      for (const auto* end : {&room.second.at_source, &room.second.at_sink})
        if (*end)
          for (const auto& text : (*end)->outcome.findings)
            CHECK_MESSAGE(false, "room ", room.first, ": ", text);
    }
    c_.rooms.clear();
  }

  cluster& c_;
  fault f_;
  std::string survivor_, source_, sink_, line_;
  bool freezes_survivor_ = false, on_connect_ = false;
  std::uint64_t target_ = 0, met_ns_ = 0;
  double before_ = 0;
  std::size_t unmet_ = 0;
};

bool full() {
  return std::getenv("HANDOFF_TEST_FULL") != nullptr;
}

std::vector<fault> all_faults() {
  std::vector<fault> faults;
  for (const bool kill : {true, false}) {
    for (const auto* state :
         {"unclaimed", "offered", "ready", "sending", "confirming", "succeeded", "failed"})
      faults.push_back({"prefill-1", fmt::format("sender.{}", state), kill});
    for (const auto* state : {"resolving", "announced", "published", "succeeded", "failed"})
      faults.push_back({"decode-1", fmt::format("receiver.{}", state), kill});
    for (const auto* state : {"connecting", "ready", "suspect", "gone"})
      for (const auto* victim : {"prefill-1", "decode-1"})
        faults.push_back({victim, fmt::format("peer.{}", state), kill});
    for (const auto* state : {"sender.offered", "sender.sending", "sender.confirming", "receiver.resolving",
                              "receiver.announced", "receiver.published"})
      faults.push_back({"bootstrap", state, kill});
  }
  return faults;
}

/// A selection of the whole: the two providers take turns.
std::vector<fault> some_faults(const std::string& provider) {
  if (provider == "tcp")
    return {{"prefill-1", "sender.sending", false},
            {"decode-1", "receiver.published", true},
            {"bootstrap", "sender.sending", true}};
  return {{"prefill-1", "sender.confirming", true}, {"decode-1", "receiver.announced", false}};
}

void run_faults(const std::string& provider) {
  cluster c(provider, {std::begin(cluster::engines), std::end(cluster::engines)}, seed);
  for (const auto& f : full() ? all_faults() : some_faults(provider)) fault_run(c, f).go();
  for (const auto* name : cluster::engines) c.end(name);
  c.end("bootstrap");
  const auto left = c.group.shm_names();
  CHECK_MESSAGE(left.empty(), left.size(), " names in /dev/shm are left, the first is ", left.front());
}

}  // namespace

TEST_CASE("tcp: rooms end in time and name who died or stopped, others go on, and all comes back") {
  run_faults("tcp");
}

TEST_CASE("shm: rooms end in time and name who died or stopped, others go on, and all comes back") {
  run_faults("shm");
}

}  // namespace handoff::test
