#include "actors/control/control_broker.hpp"

#include "actors/control/message_stream.hpp"
#include "actors/control/socket.hpp"
#include "messages/limits.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <caf/io/all.hpp>

namespace handoff {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;

enum class phase : std::uint8_t { greeting, open };

struct connection {
  connection_id id;
  bool dialled = false;
  std::uint64_t ticket = 0;
  std::string address;
  phase state = phase::greeting;
  time_point deadline;
  control::message_stream stream{limits::control_hello_bytes};
  engine_identity peer;
  std::vector<caf::actor> users;  ///< told when it ends
};

struct broker_state {
  static inline const char* name = "control_broker";

  control_broker_settings settings;
  control_routes routes;
  std::map<caf::io::connection_handle, connection> connections;
  std::unordered_map<connection_id, caf::io::connection_handle> handles;
  std::uint64_t next_id = 1;
  bool tick_pending = false;
  bool ending = false;
  caf::typed_response_promise<bool> ended;
};

using broker = caf::io::stateful_broker<broker_state>;
using handle = caf::io::connection_handle;

class control_broker {
 public:
  explicit control_broker(broker* self) : self_(self), s_(self->state) {}

  void dial(const control_dial& call) {
    if (s_.ending) {
      tell(call.owner, control_closed{call.ticket, {}, {errc::closed, "the runtime is closing", {}}});
      return;
    }
    auto address = parse_host_port(call.address);
    auto fd = address ? control::dial(*address) : tl::make_unexpected(address.error());
    if (!fd) {
      tell(call.owner, control_closed{call.ticket, {}, fd.error()});
      return;
    }
    auto hdl = self_->add_scribe(*fd);
    auto& c = add(hdl);
    c.dialled = true;
    c.ticket = call.ticket;
    c.address = call.address;
    c.users.push_back(call.owner);
    write(hdl, wire::encode(hello_message{.token = s_.settings.token.reveal(), .self = s_.settings.self}));
  }

  void accepted(handle hdl) {
    auto address = self_->remote_addr(hdl);
    if (s_.ending) {
      self_->close(hdl);
      return;
    }
    if (s_.connections.size() >= s_.settings.connections_max) {
      s_.settings.log.warn("control-refused",
                           "connection from {} refused: limits.control_connections = {} reached", address,
                           s_.settings.connections_max);
      self_->close(hdl);
      return;
    }
    add(hdl).address = std::move(address);
  }

  void send(const control_send& call) {
    auto i = s_.handles.find(call.connection);
    if (i != s_.handles.end()) write(i->second, *call.message);
  }

  void close(const control_close& call) {
    auto i = s_.handles.find(call.connection);
    if (i == s_.handles.end()) return;
    auto hdl = i->second;
    s_.connections.at(hdl).users.clear();
    end(hdl, {errc::closed, "closed here", {}});
  }

  void received(caf::io::new_data_msg& data) {
    auto i = s_.connections.find(data.handle);
    if (i == s_.connections.end()) return;
    i->second.stream.push(std::as_bytes(std::span(data.buf)));
    for (;;) {
      // A message may end the connection, so it is looked up anew.
      i = s_.connections.find(data.handle);
      if (i == s_.connections.end()) return;
      auto next = i->second.stream.next();
      if (next.reason) return refuse(data.handle, next.reason);
      if (!next.ready) return;
      handle_message(data.handle, i->second, std::move(next.what));
    }
  }

  /// CAF's I/O loop leaks a connection that it still watches when it stops, so the last one is waited for.
  caf::typed_response_promise<bool> finish() {
    s_.ending = true;
    s_.ended = self_->make_response_promise<bool>();
    auto answer = s_.ended;
    std::vector<handle> open;
    for (auto& [hdl, c] : s_.connections) {
      c.users.clear();
      open.push_back(hdl);
    }
    for (auto hdl : open) end(hdl, {errc::closed, "closed here", {}});
    answer_when_ended();
    return answer;
  }

  void answer_when_ended() {
    if (s_.ending && self_->num_connections() == 0 && s_.ended.pending()) s_.ended.deliver(true);
  }

  void lost(handle hdl) {
    auto i = s_.connections.find(hdl);
    if (i == s_.connections.end()) return;
    bool greeting = i->second.state == phase::greeting;
    end(hdl, greeting ? error{errc::peer_refused,
                              fmt::format("cannot reach {}: connection refused or closed before "
                                          "its hello was answered",
                                          i->second.address),
                              {}}
                      : error{errc::peer_gone,
                              fmt::format("{} closed its control connection", describe_peer(i->second)),
                              {}});
  }

  void expire() {
    s_.tick_pending = false;
    auto now = now_of(self_);
    std::vector<handle> late;
    for (auto& [hdl, c] : s_.connections)
      if (c.state == phase::greeting && c.deadline <= now) late.push_back(hdl);
    for (auto hdl : late) {
      auto text = fmt::format(
          "{} did not say hello within {} ms", s_.connections.at(hdl).address,
          std::chrono::duration_cast<std::chrono::milliseconds>(s_.settings.greeting_timeout).count());
      end(hdl, {errc::timed_out, std::move(text), {}});
    }
    schedule();
  }

 private:
  static std::string describe_peer(const connection& c) {
    return c.peer.engine.empty() ? c.address : fmt::format("engine {} ({})", c.peer.engine, c.address);
  }

  connection& add(handle hdl) {
    self_->configure_read(hdl, caf::io::receive_policy::at_most(read_bytes));
    auto& c = s_.connections[hdl];
    c.id = {s_.next_id++};
    c.deadline = now_of(self_) + s_.settings.greeting_timeout;
    s_.handles[c.id] = hdl;
    schedule();
    return c;
  }

  /// One pending tick while any connection is still greeting.
  void schedule() {
    if (s_.tick_pending) return;
    auto next = time_point::max();
    for (auto& [hdl, c] : s_.connections)
      if (c.state == phase::greeting) next = std::min(next, c.deadline);
    if (next == time_point::max()) return;
    s_.tick_pending = true;
    tell_after(std::max(next - now_of(self_), duration(0)), caf::actor_cast<caf::actor>(self_), tick{});
  }

  void write(handle hdl, const wire::bytes& message) {
    auto& buffer = self_->wr_buf(hdl);
    if (buffer.size() + message.size() > limits::control_write_bytes)
      return end(
          hdl, {errc::limit_exceeded, "its unsent control messages exceed limits::control_write_bytes", {}});
    auto* first = reinterpret_cast<const char*>(message.data());
    buffer.insert(buffer.end(), first, first + message.size());
    self_->flush(hdl);
  }

  /// Tells the other side why, then closes.
  void refuse(handle hdl, const error& reason) {
    auto i = s_.connections.find(hdl);
    if (i == s_.connections.end()) return;
    s_.settings.log.warn("control-refused", "{}: {}", describe_peer(i->second), to_string(reason));
    write(hdl, wire::encode(refusal_message{reason}));
    end(hdl, reason);
  }

  void end(handle hdl, const error& reason) {
    auto i = s_.connections.find(hdl);
    if (i == s_.connections.end()) return;
    auto c = std::move(i->second);
    s_.connections.erase(i);
    s_.handles.erase(c.id);
    self_->close(hdl);  // flushes what is written first
    for (auto& user : c.users)
      tell(user, control_closed{c.state == phase::greeting ? c.ticket : 0, c.id, reason});
  }

  void handle_message(handle hdl, connection& c, control::message_stream::message message) {
    if (c.state == phase::open) return deliver(hdl, c, std::move(message));
    switch (message.header.type) {
      case message_type::hello:
        return c.dialled ? unexpected_message(hdl, message) : greeted(hdl, c, message);
      case message_type::hello_ok:
        return c.dialled ? answered(hdl, c, message) : unexpected_message(hdl, message);
      case message_type::refusal:
        return c.dialled ? refused(hdl, message) : unexpected_message(hdl, message);
      default:
        return unexpected_message(hdl, message);
    }
  }

  void unexpected_message(handle hdl, const control::message_stream::message& message) {
    refuse(hdl, {errc::wire_unsupported,
                 fmt::format("message {} is not expected before hello", to_string(message.header.type)),
                 {}});
  }

  void greeted(handle hdl, connection& c, const control::message_stream::message& message) {
    auto hello = wire::decode_payload<hello_message>(message.payload);
    if (!hello) return refuse(hdl, hello.error());
    if (hello->protocol_max < limits::protocol_min || hello->protocol_min > limits::protocol_max)
      return refuse(hdl, {errc::wire_version,
                          fmt::format("{} speaks protocol {} to {}, {} speaks {} to {}", hello->self.engine,
                                      hello->protocol_min, hello->protocol_max, s_.settings.self.engine,
                                      limits::protocol_min, limits::protocol_max),
                          {}});
    if (hello->features != 0)
      return refuse(hdl, {errc::wire_unsupported,
                          fmt::format("{} needs feature bits {:#x}, which {} does not know",
                                      hello->self.engine, hello->features, s_.settings.self.engine),
                          {}});
    if (!s_.settings.token.admits(hello->token))
      return refuse(hdl, {errc::peer_unauthorized,
                          fmt::format("{} sent {}, and {} serves only peers with its token: both need the "
                                      "same secret in their security.token_file",
                                      hello->self.engine, hello->token.empty() ? "no token" : "a wrong token",
                                      s_.settings.self.engine),
                          {}});
    c.peer = hello->self;
    open(c);
    write(hdl, wire::encode(
                   hello_ok_message{std::min(hello->protocol_max, limits::protocol_max), s_.settings.self}));
  }

  void answered(handle hdl, connection& c, const control::message_stream::message& message) {
    auto ok = wire::decode_payload<hello_ok_message>(message.payload);
    if (!ok) return refuse(hdl, ok.error());
    c.peer = ok->self;
    open(c);
    tell(c.users.front(), control_opened{c.ticket, c.id, c.peer});
  }

  void refused(handle hdl, const control::message_stream::message& message) {
    auto refusal = wire::decode_payload<refusal_message>(message.payload);
    end(hdl, refusal ? refusal->reason : refusal.error());
  }

  void open(connection& c) {
    c.state = phase::open;
    c.stream.allow(limits::control_message_bytes);
  }

  void deliver(handle hdl, connection& c, control::message_stream::message message) {
    auto user = c.dialled ? c.users.front() : route(message.header.type);
    if (!user)
      return refuse(hdl, {errc::wire_unsupported,
                          fmt::format("engine {} does not serve {} here", s_.settings.self.engine,
                                      to_string(message.header.type)),
                          {}});
    if (std::find(c.users.begin(), c.users.end(), user) == c.users.end()) c.users.push_back(user);
    tell(user, control_received{c.id, c.peer, message.header,
                                std::make_shared<const wire::bytes>(std::move(message.payload))});
  }

  caf::actor route(message_type type) const {
    switch (type) {
      case message_type::register_rank:
      case message_type::topology_query:
        return s_.routes.bootstrap;
      case message_type::connect_request:
        return s_.routes.transfer_engine;
      default:
        return {};
    }
  }

  broker* self_;
  broker_state& s_;
};

caf::behavior make_broker(broker* self, const control_broker_settings& settings,
                          const std::vector<int>& listeners) {
  self->state.settings = settings;
  for (int listener : listeners) self->add_doorman(listener);
  return {
      [self](control_routes& routes) { self->state.routes = std::move(routes); },
      [self](const control_dial& call) { control_broker(self).dial(call); },
      [self](const control_send& call) { control_broker(self).send(call); },
      [self](const control_close& call) { control_broker(self).close(call); },
      [self](const caf::io::new_connection_msg& m) { control_broker(self).accepted(m.handle); },
      [self](caf::io::new_data_msg& m) { control_broker(self).received(m); },
      [self](const caf::io::connection_closed_msg& m) {
        control_broker(self).lost(m.handle);
        control_broker(self).answer_when_ended();
      },
      [self](const control_end&) { return control_broker(self).finish(); },
      [self](const caf::io::acceptor_closed_msg&) {
        self->state.settings.log.error("control-listener-lost",
                                       "the control listener was closed by the system");
      },
      [self](const tick&) { control_broker(self).expire(); },
  };
}

}  // namespace

caf::actor spawn_control_broker(caf::actor_system& system, control_broker_settings settings,
                                std::vector<int> listeners) {
  return system.middleman().spawn_broker(make_broker, std::move(settings), std::move(listeners));
}

}  // namespace handoff
