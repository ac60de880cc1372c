// What the prefill and the decode actor have in common: they feed their rooms, answer `quiesce` when rooms
// end, and keep one tick pending.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/room/quiet_watch.hpp"
#include "actors/room/tick_timer.hpp"

#include <utility>

namespace handoff {

/// The rooms' requests as messages to the transfer engine.
class engine_messages final : public fabric_port {
 public:
  explicit engine_messages(transfer_engine_interface engine) : engine_(std::move(engine)) {}
  void submit(submit_call call) override { tell(engine_, std::move(call)); }
  void send(frame_call call) override { tell(engine_, std::move(call)); }
  void connect(connect_call call) override { tell(engine_, std::move(call)); }
  void fence(fence_call call) override { tell(engine_, call); }

 private:
  transfer_engine_interface engine_;
};

template <class Interface, class Rooms, class Settings>
class rooms_shell {
 public:
  rooms_shell(typename Interface::pointer self, Settings settings, transfer_engine_interface engine)
      : self_(self), port_(std::move(engine)), rooms_(std::move(settings), port_) {}

  template <class Event>
  void handle(Event& event) {
    rooms_.handle(event, now_of(self_));
    after();
  }

  void tick() {
    auto now = now_of(self_);
    if (timer_.due(now)) rooms_.tick(now);
    after();
  }

  quiet_watch::answer quiesce(const quiesce_call& call) {
    auto answer = self_->template make_response_promise<bool>();
    if (rooms_.quiet(call))
      answer.deliver(true);
    else
      quiet_.wait(call, answer);
    return answer;
  }

  status_part status() const { return rooms_.status(); }

 private:
  void after() {
    for (auto room : rooms_.take_ended()) quiet_.ended(room);
    if (rooms_.quiet({{}, true})) quiet_.all_ended();
    timer_.template set<Interface>(self_, rooms_.deadline());
  }

  typename Interface::pointer self_;
  engine_messages port_;
  Rooms rooms_;
  quiet_watch quiet_;
  tick_timer timer_;
};

}  // namespace handoff
