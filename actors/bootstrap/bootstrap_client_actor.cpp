#include "actors/bootstrap/bootstrap_client_actor.hpp"

#include "actors/room/tick_timer.hpp"

#include <unordered_map>

namespace handoff {
namespace {

class bootstrap_client_shell final : public control_port {
 public:
  bootstrap_client_shell(bootstrap_client_interface::pointer self, directory_settings settings,
                         caf::actor broker)
      : self_(self), broker_(std::move(broker)), directory_(std::move(settings), *this) {}

  void resolve(const resolve_call& call) {
    askers_.emplace(++questions_, call.asker);
    directory_.resolve(questions_, call.peer, call.rank, call.role, now_of(self_));
    after();
  }

  bool leave() {
    directory_.leave();
    return true;
  }

  template <class Event>
  void handle(Event& event) {
    directory_.handle(event, now_of(self_));
    after();
  }

  void tick() {
    auto now = now_of(self_);
    if (timer_.due(now)) directory_.tick(now);
    after();
  }

  status_part status() const { return directory_.status(); }

 private:
  void dial(std::uint64_t ticket, const std::string& address) override {
    tell(broker_, control_dial{ticket, address, caf::actor_cast<caf::actor>(self_)});
  }
  void send(control_send call) override { tell(broker_, std::move(call)); }
  void close(control_close call) override { tell(broker_, call); }

  void after() {
    for (auto& [question, answer] : directory_.take_answers()) {
      tell(askers_.at(question), std::move(answer));
      askers_.erase(question);
    }
    timer_.set<bootstrap_client_interface>(self_, directory_.deadline());
  }

  bootstrap_client_interface::pointer self_;
  caf::actor broker_;
  directory directory_;
  std::unordered_map<std::uint64_t, caf::actor> askers_;
  std::uint64_t questions_ = 0;
  tick_timer timer_;
};

}  // namespace

bootstrap_client_interface spawn_bootstrap_client(caf::actor_system& system, directory_settings settings,
                                                  caf::actor broker) {
  auto behavior = [settings = std::move(settings), broker = std::move(broker)](
                      bootstrap_client_interface::pointer self) -> bootstrap_client_interface::behavior_type {
    auto shell = std::make_shared<bootstrap_client_shell>(self, settings, broker);
    return {
        [shell](const registration& m) { shell->handle(m); },
        [shell](const resolve_call& m) { shell->resolve(m); },
        [shell](no_new_rooms m) { shell->handle(m); },
        [shell](leave_call) { return shell->leave(); },
        [shell](const control_opened& m) { shell->handle(m); },
        [shell](const control_received& m) { shell->handle(m); },
        [shell](const control_closed& m) { shell->handle(m); },
        [shell](tick) { shell->tick(); },
        [shell](const status_call&) { return shell->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
