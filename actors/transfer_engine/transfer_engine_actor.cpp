#include "actors/transfer_engine/transfer_engine_actor.hpp"

#include "actors/room/tick_timer.hpp"

namespace handoff {
namespace {

class transfer_engine_shell final : public peer_desk_port {
 public:
  transfer_engine_shell(transfer_engine_interface::pointer self, peer_desk_settings settings,
                        std::shared_ptr<transport::transport> transport, caf::actor broker,
                        bootstrap_client_interface directory)
      : self_(self),
        transport_(std::move(transport)),
        broker_(std::move(broker)),
        directory_(std::move(directory)),
        peers_(std::move(settings), *transport_, *this) {}

  void serve(const rank_actors& actors) { actors_ = actors; }

  template <class Event>
  void handle(Event& event) {
    peers_.handle(event, now_of(self_));
    timer_.set<transfer_engine_interface>(self_, peers_.deadline());
  }

  void tick() {
    auto now = now_of(self_);
    if (timer_.due(now)) peers_.tick(now);
    timer_.set<transfer_engine_interface>(self_, peers_.deadline());
  }

  status_part status() const { return peers_.status(); }

 private:
  caf::actor me() { return caf::actor_cast<caf::actor>(self_); }

  void dial(std::uint64_t ticket, const std::string& address) override {
    tell(broker_, control_dial{ticket, address, me()});
  }
  void send(control_send call) override { tell(broker_, std::move(call)); }
  void close(control_close call) override { tell(broker_, call); }
  void resolve(const std::string& peer, rank_coord rank, engine_role role) override {
    tell(directory_, resolve_call{peer, rank, role, me()});
  }
  void tell_source(rank_event event) override { pass(actors_.prefill, std::move(event)); }
  void tell_sink(rank_event event) override { pass(actors_.decode, std::move(event)); }

  static void pass(const caf::actor& to, rank_event event) {
    std::visit([&](auto& e) { tell(to, std::move(e)); }, event);
  }

  transfer_engine_interface::pointer self_;
  std::shared_ptr<transport::transport> transport_;
  caf::actor broker_;
  bootstrap_client_interface directory_;
  rank_actors actors_;
  peer_desk peers_;
  tick_timer timer_;
};

}  // namespace

transfer_engine_interface spawn_transfer_engine(caf::actor_system& system, peer_desk_settings settings,
                                                std::shared_ptr<transport::transport> transport,
                                                caf::actor broker, bootstrap_client_interface directory) {
  auto behavior = [settings = std::move(settings), transport = std::move(transport),
                   broker = std::move(broker), directory = std::move(directory)](
                      transfer_engine_interface::pointer self) -> transfer_engine_interface::behavior_type {
    auto shell = std::make_shared<transfer_engine_shell>(self, settings, transport, broker, directory);
    return {
        [shell](const rank_actors& m) { shell->serve(m); },
        [shell](submit_call& m) { shell->handle(m); },
        [shell](const frame_call& m) { shell->handle(m); },
        [shell](const connect_call& m) { shell->handle(m); },
        [shell](const fence_call& m) { shell->handle(m); },
        [shell](no_new_rooms m) { shell->handle(m); },
        [shell](const transport_batch& m) { shell->handle(*m.events); },
        [shell](const control_opened& m) { shell->handle(m); },
        [shell](const control_received& m) { shell->handle(m); },
        [shell](const control_closed& m) { shell->handle(m); },
        [shell](const resolved& m) { shell->handle(m); },
        [shell](tick) { shell->tick(); },
        [shell](const status_call&) { return shell->status(); },
    };
  };
  return system.spawn(std::move(behavior));
}

}  // namespace handoff
