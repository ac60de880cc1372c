// update_status and conclude_transfer: a source's rooms answer the reference's sequences. The adapter brings
// what a status stands for: 1 an offer and announces, 2 the sinks' pages, 3 a chunk, 4 everything with the
// sinks' word, 0 the engine's abort. `clear` is the engine forgetting its room; the next life of it is the
// next attempt. The sink ranks of a life are those that the sequence names before its end, because our first
// announce already says how many there are; dummies have nothing to receive and do not announce.
#include "tests/actors/machines/bare_source.hpp"
#include "tests/actors/machines/golden/sequences.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

namespace handoff::testing {
namespace {

std::string name_of(const json& target) {
  return fmt::format("{}:{}", target[0].get<std::string>(), target[1].get<int>());
}

class adapter {
 public:
  explicit adapter(const sequence& s) : sequence_(s) {}

  /// Our answer to operation `at`; the marks of its room are in `m`.
  void apply(std::size_t at, moment& m) {
    const auto& op = sequence_.operations[at];
    const std::string what = op[0];
    room_id room{op[1].get<std::uint64_t>()};
    auto& r = rooms_[room];
    now_ = at;
    json extra;
    if (what == "update") update(room, r, op[2]);
    if (what == "clear") clear(room, r);
    if (what == "record_failure") record(room, r, op[2]);
    if (what == "conclude") extra = conclude(room, r, op);
    m.marks = r.marks;
    m.ours = answer(room, r, what, std::move(extra));
  }

  /// Every room forgotten: is anything left?
  bool leaves_nothing() {
    for (auto& [room, r] : rooms_) clear(room, r);
    return source_.baseline();
  }

 private:
  struct life {
    bool open = false;
    std::uint32_t attempt = 0;
    std::set<std::string> sinks;
    bool chunk = false, last = false;
    std::map<std::string, json> marks;
  };

  json status(room_id room, const life& r) const {
    if (!r.open) return nullptr;
    return static_cast<int>(source_.verdict(room).value_or(kv_poll::bootstrapping));
  }

  json answer(room_id room, const life& r, const std::string& what, json extra) {
    auto now = status(room, r);
    if (!sequence_.answers[0].is_object()) return now;
    json out{{"status", now}, {"reason", nullptr}};
    if (now == 0) out["reason"] = source_.reason(room);
    if (what == "conclude") {
      out["returned"] = now;
      out["sent"] = std::move(extra);
    }
    return out;
  }

  void update(room_id room, life& r, int to) {
    if (!r.open && (to == 1 || to == 2)) open(room, r);
    if (!r.open && to == 0) {  // a word about a room that is not here yet
      r.marks["aborted ahead"] = true;
      source_.peer_abort({room, {r.attempt + 1}}, "ahead");
    }
    if (!r.open) return late(room, r, to);
    if (to == 0) fail(room, r, "<update>");
    if (to != 0) bring(room, r, to);
  }

  // Messages of a room that nobody has opened, or of a life that is over: nothing may come of them.
  void late(room_id room, life& r, int to) {
    if (to == 4) source_.confirm({room, {r.attempt}}, "late", true);
    if (to == 3) source_.send(room, 0, 8);
  }

  void open(room_id room, life& r) {
    r.open = true;
    r.chunk = r.last = false;
    ++r.attempt;
    auto sinks = sinks_of_life(room);
    r.sinks = sinks.empty() ? std::set<std::string>{"nameless"} : sinks;
    source_.forget(room);
    source_.offer(room);
    for (const auto& s : r.sinks) source_.announce({room, {r.attempt}}, s, r.sinks.size());
    source_.take_heard();
  }

  void bring(room_id room, life& r, int to) {
    bool over = is_terminal(source_.verdict(room).value_or(kv_poll::bootstrapping));
    if (to == 1 && !over) source_.offer(room);
    if (to == 1)
      for (const auto& s : r.sinks) source_.announce({room, {r.attempt}}, s, r.sinks.size());
    if (to >= 2)
      for (const auto& s : r.sinks) source_.publish({room, {r.attempt}}, s);
    if (to >= 3 && !r.chunk) {
      r.chunk = true;
      source_.send(room, 0, 8);
    }
    if (to != 4) return;
    if (!r.last) source_.send(room, 8, tokens);
    r.last = true;
    for (const auto& s : r.sinks) source_.confirm({room, {r.attempt}}, s, true);
  }

  void fail(room_id room, life& r, const std::string& reason) {
    if (source_.verdict(room) != kv_poll::success) r.marks.emplace("first reason", reason);
    source_.abort(room, reason);
  }

  void record(room_id room, life& r, const std::string& reason) {
    if (!r.open) return;
    r.marks["recorded"] = reason;
    fail(room, r, reason);
  }

  void clear(room_id room, life& r) {
    if (r.open) source_.abort(room, "cleared");
    source_.forget(room);
    bool ahead = !r.open && r.marks.count("aborted ahead") != 0;
    r.open = false;
    r.marks.clear();
    if (ahead) r.marks["aborted ahead"] = true;
  }

  // Who asks again after the room has ended is told again.
  json conclude(room_id room, life& r, const json& op) {
    if (!r.open) return json::array();
    source_.take_heard();
    bool over = is_terminal(source_.verdict(room).value_or(kv_poll::bootstrapping));
    if (over)
      for (const auto& s : targets(room, op)) source_.announce({room, {r.attempt}}, s, r.sinks.size());
    else if (op[2] == 4)
      bring(room, r, 4);
    else
      fail(room, r, op[4].is_null() ? "<default>" : op[4].get<std::string>());
    json sent = json::array();
    for (const auto& h : source_.take_heard()) {
      if (h.who == "nameless") continue;
      auto colon = h.who.rfind(':');
      sent.push_back({h.who.substr(0, colon), std::stoi(h.who.substr(colon + 1)), static_cast<int>(h.status),
                      h.status == kv_poll::success ? json() : json(h.reason)});
    }
    return sent;
  }

  // The reference's rule for whom it tells: those named, else the last destinations without the dummies.
  std::set<std::string> targets(room_id room, const json& op) const {
    std::set<std::string> out;
    if (!op[3].is_null()) {
      for (const auto& t : op[3]) out.insert(name_of(t));
      return out;
    }
    for (std::size_t i = 0; i < now_; ++i) {
      const auto& o = sequence_.operations[i];
      if (o[1] != room.value || (o[0] != "destinations" && o[0] != "clear")) continue;
      out.clear();
      for (const auto& d : o.size() > 2 ? o[2] : json::array())
        if (!d[2]) out.insert(name_of(d));
    }
    return out;
  }

  std::set<std::string> sinks_of_life(room_id room) const {
    std::set<std::string> out;
    std::size_t first = now_, end = now_;
    for (std::size_t i = 0; i < now_; ++i)
      if (sequence_.operations[i][1] == room.value && sequence_.operations[i][0] == "clear") first = i + 1;
    if (first == now_) first = 0;
    for (; end < sequence_.operations.size(); ++end) {
      const auto& o = sequence_.operations[end];
      if (o[1] != room.value) continue;
      bool ends =
          o[0] == "conclude" || o[0] == "record_failure" || (o[0] == "update" && o[2].get<int>() % 4 == 0);
      if (ends && end > now_) {
        ++end;
        break;
      }
      if (o[0] == "clear" && end > now_) break;
    }
    for (std::size_t i = first; i < end; ++i) {
      const auto& o = sequence_.operations[i];
      if (o[1] != room.value) continue;
      if (o[0] == "destinations")
        for (const auto& d : o[2])
          if (!d[2]) out.insert(name_of(d));
      if (o[0] == "conclude" && !o[3].is_null() && i > now_)
        for (const auto& t : o[3]) out.insert(name_of(t));
    }
    return out;
  }

  const sequence& sequence_;
  std::size_t now_ = 0;
  bare_source source_;
  std::map<room_id, life> rooms_;
};

// -- where ours is stricter --------------------------------------------------------------------------------

json status_in(const json& answer) {
  return answer.is_object() ? answer["status"] : answer;
}
json reason_in(const json& answer) {
  return answer.is_object() ? answer["reason"] : json();
}
/// The answer with every reason cut out and what was sent as a set.
json bare(json answer) {
  answer["reason"] = nullptr;
  if (!answer.contains("sent")) return answer;
  std::set<json> sent;
  for (auto s : answer["sent"]) {
    s[3] = nullptr;
    sent.insert(std::move(s));
  }
  answer["sent"] = sent;
  return answer;
}
bool superset(const json& ours, const json& theirs) {
  return std::all_of(theirs.begin(), theirs.end(),
                     [&](const json& t) { return std::find(ours.begin(), ours.end(), t) != ours.end(); });
}

const stricter_place success_is_final{
    "success is final", "what the sinks have confirmed cannot fail afterwards", [](const moment& m) {
      return status_in(m.ours) == 4 && m.operation[0] != "clear" &&
             (status_in(m.theirs) == 0 || m.marked("recorded"));
    }};
const stricter_place abort_ahead{
    "an abort ahead of its room is remembered", "the room ends as it opens, with the reason of the abort",
    [](const moment& m) {
      return m.marked("aborted ahead") && status_in(m.ours) == 0 && !status_in(m.theirs).is_null();
    }};

}  // namespace

TEST_CASE("golden: a source's statuses follow update_status") {
  comparison book("update_status", {success_is_final, abort_ahead});
  for (const auto& s : load_sequences("update_status")) {
    adapter ours(s);
    for (std::size_t i = 0; i < s.operations.size(); ++i) {
      moment m{s.operations[i], {}, s.answers[i], {}};
      ours.apply(i, m);
      book.compare(s, i, m);
    }
    CHECK(ours.leaves_nothing());
  }
  book.conclude();
}

TEST_CASE("golden: a source's ends follow conclude_transfer") {
  comparison book(
      "conclude_transfer",
      {success_is_final,
       {"a recorded failure ends the room at once", "the sinks hear of it now, not when the transfer ends",
        [](const moment& m) {
          return m.marked("recorded") && status_in(m.ours) == 0 && status_in(m.theirs) != 0 &&
                 reason_in(m.ours) == m.marks.at("first reason");
        }},
       {"no failure without a reason", "theirs fails without one or takes a later one",
        [](const moment& m) {
          return status_in(m.ours) == 0 && m.marked("first reason") && reason_in(m.ours) == "<update>" &&
                 m.marks.at("first reason") == "<update>" &&
                 superset(bare(m.ours)["sent"], bare(m.theirs)["sent"]);
        }},
       {"the first reason stays", "a later one does not replace it",
        [](const moment& m) {
          return status_in(m.ours) == 0 && status_in(m.theirs) == 0 && m.marked("first reason") &&
                 reason_in(m.ours) == m.marks.at("first reason") && reason_in(m.theirs) != reason_in(m.ours);
        }},
       {"every sink of the room is told", "not only those that one call names, and each once",
        [](const moment& m) {
          return m.ours.contains("sent") && m.ours["status"] == m.theirs["status"] &&
                 m.ours["reason"] == m.theirs["reason"] && superset(m.ours["sent"], m.theirs["sent"]);
        }},
       {"a success is said once", "the sinks have decided it themselves", [](const moment& m) {
          return m.ours.contains("sent") && m.ours["sent"].empty() && m.ours["status"] == 4 &&
                 m.theirs["status"] == 4;
        }}});
  for (const auto& s : load_sequences("conclude_transfer")) {
    adapter ours(s);
    for (std::size_t i = 0; i < s.operations.size(); ++i) {
      moment m{s.operations[i], {}, s.answers[i], {}};
      ours.apply(i, m);
      book.compare(s, i, m);
    }
    CHECK(ours.leaves_nothing());
  }
  book.conclude();
}

}  // namespace handoff::testing
