// apply_prefill_status: what the ranks of a prefill engine report to one decode room. Ours: one receiver
// machine per source rank, and the poll gate that takes the least of them. A status 4 is a `room_done` whose
// proof holds, 0 an abort, 2 (policy prefill_complete) a source rank that was found; the others are no
// messages of ours. The adapter reads the expected number ahead, because a gate knows its ranks from the
// start. `no_more_chunks` speaks of staging and is not compared.
#include "actors/poll_gate/poll_gate.hpp"
#include "actors/room/tombstones.hpp"
#include "tests/actors/machines/bare_source.hpp"
#include "tests/actors/machines/golden/sequences.hpp"

#include <set>

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

constexpr std::uint32_t many = 64;  // ranks of a room that never hears how many it has

class adapter {
 public:
  explicit adapter(const sequence& s) : sequence_(s), policy_(s.args["policy"]) { context_.sink_ranks = 1; }

  void apply(std::size_t at, moment& m) {
    const auto& op = sequence_.operations[at];
    const std::string what = op[0];
    room_id room{op[1].get<std::uint64_t>()};
    auto& r = rooms_[room];
    if (what == "receiver") open(room, r, at);
    if (what == "expect") r.marks["expected"] = op[2];
    if (what == "clear") clear(r);
    if (what == "status" && r.gate) status(r, op[2], op[3], op[4]);
    m.marks = r.marks;
    m.ours = {{"status", nullptr}, {"ranks", r.succeeded}, {"reason", nullptr}};
    if (r.gate) m.ours["status"] = static_cast<int>(r.poll);
    if (r.gate && r.poll == kv_poll::failed) m.ours["reason"] = r.reason.detail;
  }

 private:
  struct life {
    room_key key;
    std::uint32_t attempt = 0, expected = many;
    std::optional<poll_gate> gate;
    kv_poll poll = kv_poll::bootstrapping;
    error reason;
    std::map<int, receiver_machine> ranks;  ///< by rank, in the order in which they were met
    std::map<int, std::uint32_t> seats;
    std::set<int> succeeded;
    std::map<std::string, json> marks;
  };

  void open(room_id room, life& r, std::size_t at) {
    if (r.gate) return;  // announced twice: the first stands
    auto attempt = r.attempt + 1;
    auto marks = r.marks;
    r = {};
    r.marks = marks;
    r.attempt = attempt;
    r.key = {room, {attempt}};
    for (auto i = at; i < sequence_.operations.size(); ++i) {
      const auto& o = sequence_.operations[i];
      if (o[1] != room.value) continue;
      if (o[0] == "clear") break;
      if (o[0] == "expect") r.expected = o[2];
    }
    if (r.marks.count("expected")) r.expected = r.marks["expected"];
    r.gate.emplace(r.expected, 1);
  }

  void clear(life& r) {
    r.gate.reset();
    r.succeeded.clear();
    r.marks.clear();
  }

  static peer_view source(int rank, const rig& r) {
    auto v = r.prefill();
    v.peer.value += static_cast<std::uint32_t>(rank);
    v.identity.rank.tp = static_cast<std::uint16_t>(rank);
    return v;
  }

  void status(life& r, int status, int rank, const json& reason) {
    bool finds = status == 2 && policy_ == "prefill_complete";
    if (status != 4 && status != 0 && !finds) return;
    auto i = r.ranks.find(rank);
    if (i == r.ranks.end()) {
      r.seats.emplace(rank, static_cast<std::uint32_t>(r.seats.size()));
      i = r.ranks.emplace(rank, receiver_machine(r.key, context_, "", at(0s))).first;
    }
    auto& m = i->second;
    const auto from = source(rank, rig_);
    room_effects out;
    m.announce(at(1s), out);
    m.peer_found(from, at(1s), out);
    if (status == 4) {
      (void)m.publish(rig::pages(10), tokens, sink_slot, at(2s), out);
      m.done(from, rig_.done(r.key), rig::row(), at(3s), out);
    }
    if (status == 0) {
      if (m.poll() == kv_poll::success) r.marks["failed after success"] = true;
      auto abort = rig::abort(true, r.key);
      abort.reason = {errc::aborted, reason.is_null() ? "<default>" : reason.get<std::string>(), "prefill-0"};
      m.peer_abort(from, abort, at(3s), out);
    }
    vote(r, rank, m, out);
  }

  void vote(life& r, int rank, const receiver_machine& m, const room_effects& out) {
    for (const auto& v : all<verdict_effect>(out)) {
      if (status_waits(v)) continue;
      auto passed = r.gate->vote({r.key, r.seats.at(rank), v.poll, v.reason, v.proven_tokens});
      if (!passed || !*passed) continue;
      r.poll = (*passed)->poll;
      r.reason = (*passed)->reason;
      if (r.poll != kv_poll::failed) continue;
      for (auto& [other, machine] : r.ranks) {  // failed for one is failed for all
        room_effects ignored;
        machine.abort(r.reason, at(4s), ignored);
      }
    }
    if (m.poll() == kv_poll::success && r.poll != kv_poll::failed) r.succeeded.insert(rank);
  }

  // Without the policy a room says nothing before its end: the engine's own steps are no status.
  bool status_waits(const verdict_effect& v) const {
    return v.poll == kv_poll::transferring || (v.poll == kv_poll::waiting_for_input && policy_ == "early");
  }

  const sequence& sequence_;
  std::string policy_;
  rig rig_;
  receiver_context context_ = rig_.sink;
  std::map<room_id, life> rooms_;
};

}  // namespace

TEST_CASE("golden: a sink's ends follow apply_prefill_status") {
  auto failed = [](const moment& m) { return m.ours["status"] == 0 && m.theirs["status"] == 0; };
  comparison book(
      "apply_prefill_status",
      {{"success is final", "a rank whose coverage was proven cannot fail afterwards",
        [](const moment& m) {
          return m.marked("failed after success") && m.ours["status"] != 0 && m.theirs["status"] == 0;
        }},
       {"a failed room counts nothing", "a rank that reports its success too late",
        [failed](const moment& m) {
          return failed(m) && m.ours["reason"] == m.theirs["reason"] &&
                 m.ours["ranks"].size() < m.theirs["ranks"].size();
        }},
       {"every rank is found before the room may allocate", "not only the first that reports",
        [](const moment& m) {
          return m.ours["status"] == 1 && m.theirs["status"] == 2 && m.ours["ranks"] == m.theirs["ranks"];
        }}});
  for (const auto& s : load_sequences("apply_prefill_status")) {
    adapter ours(s);
    for (std::size_t i = 0; i < s.operations.size(); ++i) {
      moment m{s.operations[i], {}, s.answers[i], {}};
      m.theirs.erase("no_more_chunks");
      ours.apply(i, m);
      book.compare(s, i, m);
    }
  }
  book.conclude();
}

}  // namespace handoff::testing
