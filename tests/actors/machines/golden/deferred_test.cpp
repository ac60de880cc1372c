// deferred_bootstrap: an endpoint and a sender that come in any order. Ours: `register` is a sink's announce
// and pages, `open` the engine's offer, `complete` its last chunk, `fail` its abort, `close` the room's end
// by the sink's word. A notice "not failed" is `room_done` on its way to that endpoint, "failed" an abort.
// Owners are the embedder's handles, which the adapter keeps; clock and memory of ended rooms are the rooms'
// own.
#include "tests/actors/machines/bare_source.hpp"
#include "tests/actors/machines/golden/sequences.hpp"

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

class adapter {
 public:
  explicit adapter(const sequence& s)
      : timeout_(std::chrono::seconds(s.args["timeout"].get<int>())), source_(timeout_, timeout_) {}

  void apply(moment& m) {
    const auto& op = m.operation;
    const std::string what = op[0];
    m.ours = nullptr;
    if (what == "advance") return advance(op[1]);
    room_id room{op[1].get<std::uint64_t>()};
    auto& r = rooms_[room];
    source_.take_heard();
    const auto* g = source_.grave(room);
    if (!g) source_.forget(room);
    if (g && g->reason.code == errc::timed_out) r.marks["waited in vain"] = true;
    if (what == "open") m.ours = open(room, r, op[2]);
    if (what == "register")
      add_endpoint(room, r, fmt::format("{}:{}", op[2].get<std::string>(), op[3].get<int>()));
    if (what == "complete" && r.owner == op[2] && !failed(room)) complete(room, r);
    if (what == "fail") fail(room, r);
    if (what == "close" && r.owner == op[2]) close(room, r, op[3]);
    for (const auto& h : source_.take_heard()) m.ours = notice(h);
    m.marks = r.marks;
  }

 private:
  struct life {
    std::uint32_t attempt = 1;
    std::string owner;
    std::set<std::string> endpoints;
    bool complete = false, told = false;
    std::map<std::string, json> marks;
  };

  bool failed(room_id room) const {
    const auto* g = source_.grave(room);
    return g && g->poll == kv_poll::failed;
  }
  static json notice(const heard& h) {
    auto colon = h.who.rfind(':');
    return {{"ip", h.who.substr(0, colon)},
            {"port", std::stoi(h.who.substr(colon + 1))},
            {"failed", h.status == kv_poll::failed}};
  }

  void advance(int seconds) { source_.advance(std::chrono::seconds(seconds)); }

  json open(room_id room, life& r, const std::string& owner) {
    auto before = source_.duplicates();
    bool ended = failed(room) && !source_.grave(room)->unclaimed;
    if (!r.owner.empty() && ended) return nullptr;
    if (!ended) source_.offer(room);
    if (source_.duplicates() != before) return nullptr;
    r.owner = owner;
    return {{"failed", ended || source_.verdict(room) == kv_poll::failed}};
  }

  void add_endpoint(room_id room, life& r, const std::string& who) {
    r.endpoints.insert(who);
    source_.announce({room, {r.attempt}}, who, 1);
    source_.publish({room, {r.attempt}}, who);
  }

  void complete(room_id room, life& r) {
    if (!r.complete) source_.send(room, 0, tokens);
    r.complete = true;
  }

  // After `room_done` the sink has the last word; it takes the abort.
  void fail(room_id room, life& r) {
    source_.abort(room, "failed");
    for (const auto& e : r.endpoints) source_.confirm({room, {r.attempt}}, e, false);
  }

  void close(room_id room, life& r, bool success) {
    if (!success || failed(room)) {
      fail(room, r);
      r.owner.clear();
      return;
    }
    complete(room, r);
    for (const auto& e : r.endpoints) source_.confirm({room, {r.attempt}}, e, true);
    r.owner.clear();
    bool over = source_.verdict(room) == kv_poll::success;
    if (!over) r.marks["closed early"] = true;
    source_.forget(room);
    if (!over) return;
    auto attempt = r.attempt + 1;
    r = {};
    r.attempt = attempt;
  }

  duration timeout_;
  bare_source source_;
  std::map<room_id, life> rooms_;
};

}  // namespace

TEST_CASE("golden: endpoints and senders in any order follow deferred_bootstrap") {
  comparison book(
      "deferred_bootstrap",
      {{"a success is said once", "the endpoint heard it when everything was written",
        [](const moment& m) {
          return m.operation[0] == "close" && m.ours.is_null() && m.theirs["failed"] == false &&
                 !m.marked("closed early");
        }},
       {"an endpoint that waited in vain is told", "and a sender that comes too late hears why it is alone",
        [](const moment& m) {
          bool next_life = m.operation[0] == "open" && m.theirs.is_null();
          return m.marked("waited in vain") &&
                 (next_life || (m.ours.is_object() && m.ours["failed"] == true &&
                                (m.theirs.is_null() || m.theirs["failed"] == false)));
        }},
       {"a room ends with its sinks only",
        "closed before an endpoint came, it still serves the one that comes",
        [](const moment& m) { return m.marked("closed early"); }}});
  for (const auto& s : load_sequences("deferred_bootstrap")) {
    adapter ours(s);
    for (std::size_t i = 0; i < s.operations.size(); ++i) {
      moment m{s.operations[i], {}, s.answers[i], {}};
      ours.apply(m);
      book.compare(s, i, m);
    }
  }
  book.conclude();
}

}  // namespace handoff::testing
