#include "actors/drain/drain_actor.hpp"

#include <functional>
#include <set>
#include <utility>

namespace handoff {
namespace {

/// Both sides' answers to one question.
struct pair_of_answers {
  int awaited = 2;
  drain_outcome outcome;
};

class drain_shell : public std::enable_shared_from_this<drain_shell> {
 public:
  using done = std::function<void(const drain_outcome&)>;

  drain_shell(drain_interface::pointer self, drain_settings settings)
      : self_(self), settings_(std::move(settings)) {}

  caf::typed_response_promise<drain_outcome> drain(const drain_call& call) {
    auto answer = self_->make_response_promise<drain_outcome>();
    drain(call.within, [answer](const drain_outcome& outcome) mutable { answer.deliver(outcome); });
    return answer;
  }

  void received(const control_received& what) {
    auto request = wire::decode_payload<drain_request_message>(*what.payload);
    if (!request) return send(what.connection, refusal_message{request.error()});
    if (!askers_.insert(what.connection).second)
      return send(what.connection,
                  refusal_message{{errc::limit_exceeded,
                                   "this connection has asked for a drain already and was not "
                                   "answered yet",
                                   {}}});
    settings_.log.info("drain-asked", "by {}, within {} ms", what.peer.engine, request->deadline_ms);
    drain(std::chrono::milliseconds(request->deadline_ms),
          [me = shared_from_this(), connection = what.connection](const drain_outcome& outcome) {
            if (me->askers_.erase(connection) > 0)
              me->send(connection, drain_reply_message{outcome.rooms_left, for_wire(outcome.reason)});
          });
  }

  void closed(const control_closed& what) { askers_.erase(what.connection); }

 private:
  template <class T>
  void send(connection_id connection, const T& message) {
    tell(settings_.broker,
         control_send{connection, std::make_shared<const wire::bytes>(wire::encode(message))});
  }

  void drain(duration within, done then) {
    if (!std::exchange(draining_, true))
      settings_.log.info("draining", "{} takes no new rooms", settings_.name);
    tell(settings_.directory, no_new_rooms{});
    tell(settings_.engine, no_new_rooms{});
    tell(settings_.prefill, no_new_rooms{});
    tell(settings_.decode, no_new_rooms{});
    // A wait that has passed is not an answer yet: the count of rooms is.
    auto both = std::make_shared<pair_of_answers>();
    auto settled = [me = shared_from_this(), both, within, then = std::move(then)] {
      if (--both->awaited == 0) me->count_rooms(within, then);
    };
    auto wait = [&](const auto& rooms) {
      ask(self_, rooms, std::max<duration>(within, std::chrono::milliseconds(1)), quiesce_call{{}, true})
          .then([settled](bool) { settled(); }, [settled](const caf::error&) { settled(); });
    };
    wait(settings_.prefill);
    wait(settings_.decode);
  }

  void count_rooms(duration within, const done& then) {
    auto both = std::make_shared<pair_of_answers>();
    auto settled = [me = shared_from_this(), both, within, then] {
      if (--both->awaited > 0) return;
      auto& outcome = both->outcome;
      if (outcome.rooms_left > 0 && !outcome.reason)
        outcome.reason = {
            errc::timed_out,
            fmt::format("{} still has {} rooms after {} ms", me->settings_.name, outcome.rooms_left,
                        std::chrono::duration_cast<std::chrono::milliseconds>(within).count()),
            {}};
      if (!outcome.reason) me->settings_.log.info("drained", "{} has no room left", me->settings_.name);
      then(outcome);
    };
    auto count = [&](const auto& rooms, std::string_view side) {
      ask(self_, rooms, settings_.status_timeout, status_call{})
          .then(
              [settled, both](const status_part& part) {
                for (const auto& [name, value] : part.counts)
                  if (name == "rooms") both->outcome.rooms_left += value;
                settled();
              },
              [settled, both, side, me = shared_from_this()](const caf::error&) {
                ++both->outcome.rooms_left;
                both->outcome.reason = {errc::timed_out,
                                        fmt::format("the {} side of {} does not say how many rooms it has",
                                                    side, me->settings_.name),
                                        {}};
                settled();
              });
    };
    count(settings_.prefill, "source");
    count(settings_.decode, "sink");
  }

  drain_interface::pointer self_;
  drain_settings settings_;
  bool draining_ = false;
  std::set<connection_id> askers_;  ///< one question at a time each
};

}  // namespace

drain_interface spawn_drain(caf::actor_system& system, drain_settings settings) {
  return system.spawn(
      [settings = std::move(settings)](drain_interface::pointer self) -> drain_interface::behavior_type {
        auto shell = std::make_shared<drain_shell>(self, settings);
        return {
            [shell](const drain_call& m) { return shell->drain(m); },
            [shell](const control_received& m) { shell->received(m); },
            [shell](const control_closed& m) { shell->closed(m); },
        };
      });
}

}  // namespace handoff
