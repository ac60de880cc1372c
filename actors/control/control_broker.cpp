#include "actors/control/control_broker.hpp"

#include "actors/control/message_stream.hpp"
#include "actors/control/socket.hpp"
#include "messages/limits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include <caf/io/all.hpp>
#include <sys/socket.h>

namespace handoff {
namespace {

/// Read at once: little before hello.
constexpr std::size_t greeting_read_bytes = 4 * 1024, open_read_bytes = 64 * 1024;
/// What a message costs beside its payload while it waits for its user.
constexpr std::size_t message_overhead_bytes = 512;
/// For the last words of a connection to leave, and for the other side to close.
constexpr auto farewell_timeout = std::chrono::milliseconds(500);
/// Lines about strangers in our log.
constexpr control::rate_limit refusal_lines{1, 10};

enum class phase : std::uint8_t { greeting, open, ending };
enum class farewell : std::uint8_t { last_words, none };

struct connection {
  connection_id id;
  bool dialled = false;
  std::uint64_t ticket = 0;
  std::string address;
  phase state = phase::greeting;
  time_point deadline;  ///< greeting and ending
  std::size_t unsent_bytes = 0, unprocessed_bytes = 0;
  control::message_stream stream{limits::control_hello_bytes};
  engine_identity peer;
  std::vector<caf::actor> users;  ///< told when it ends
};

struct broker_state {
  static inline const char* name = "control_broker";

  control_broker_settings settings;
  std::optional<control::admission_machine> admission;  ///< of accepted connections
  control::line_limiter refusal_log{refusal_lines};
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
    auto& c = add(hdl, {s_.next_id++});
    c.dialled = true;
    c.ticket = call.ticket;
    c.address = call.address;
    c.users.push_back(call.owner);
    write(hdl, c, wire::encode(hello_message{.token = s_.settings.token.reveal(), .self = s_.settings.self}));
  }

  void accepted(handle hdl) {
    auto address = self_->remote_addr(hdl);
    if (address.empty()) {  // reset already
      self_->close(hdl);
      return;
    }
    connection_id id{s_.next_id++};
    auto verdict = s_.ending
                       ? control::admission_machine::verdict{{errc::closed, "the runtime is closing", {}}, {}}
                       : s_.admission->arrived(id.value, address, now_of(self_));
    if (verdict.refusal) {
      say("connection from {} refused: {}", address, to_string(verdict.refusal));
      self_->close(hdl);  // nothing was read yet, so it is gone at once
      return;
    }
    if (verdict.evicted) evict({*verdict.evicted});
    add(hdl, id).address = std::move(address);
  }

  void send(const control_send& call) {
    if (auto* c = find(call.connection)) write(s_.handles.at(call.connection), *c, *call.message);
  }

  void close(const control_close& call) {
    auto* c = find(call.connection);
    if (!c) return;
    c->users.clear();
    end(s_.handles.at(call.connection), *c, {errc::closed, "closed here", {}}, farewell::last_words);
  }

  void received(const caf::io::new_data_msg& data) {
    auto i = s_.connections.find(data.handle);
    if (i == s_.connections.end() || i->second.state == phase::ending) return;
    auto& c = i->second;
    c.stream.push(std::as_bytes(std::span(data.buf)));
    while (c.state != phase::ending) {
      auto next = c.stream.next();
      if (next.reason) return refuse(data.handle, c, next.reason);
      if (!next.ready) return;
      handle_message(data.handle, c, std::move(next.what));
    }
  }

  void processed(const control_processed& what) {
    if (auto* c = find(what.connection)) c->unprocessed_bytes -= what.bytes;
  }

  void sent(const caf::io::data_transferred_msg& what) {
    auto i = s_.connections.find(what.handle);
    if (i == s_.connections.end()) return;
    i->second.unsent_bytes = what.remaining;
    if (i->second.state == phase::ending && what.remaining == 0) send_fin(what.handle);
  }

  /// CAF's I/O loop leaks a connection that it still watches when it stops, so the last one is waited for.
  caf::typed_response_promise<bool> finish() {
    s_.ending = true;
    s_.ended = self_->make_response_promise<bool>();
    auto answer = s_.ended;
    for (auto& [hdl, c] : s_.connections) {
      c.users.clear();
      end(hdl, c, {errc::closed, "closed here", {}}, farewell::last_words);
    }
    answer_when_ended();
    return answer;
  }

  void lost(handle hdl) {
    auto i = s_.connections.find(hdl);
    if (i == s_.connections.end()) return;
    auto c = std::move(i->second);
    s_.connections.erase(i);
    s_.handles.erase(c.id);
    s_.admission->ended(c.id.value);
    if (c.state == phase::greeting)
      tell_users(c,
                 {errc::peer_refused,
                  fmt::format("cannot reach {}: connection refused or closed before its hello was answered",
                              c.address),
                  {}});
    if (c.state == phase::open)
      tell_users(c, {errc::peer_gone, fmt::format("{} closed its control connection", describe_peer(c)), {}});
    answer_when_ended();
  }

  void expire() {
    s_.tick_pending = false;
    auto now = now_of(self_);
    for (auto& [hdl, c] : s_.connections) {
      if (c.state == phase::open || c.deadline > now) continue;
      c.deadline = time_point::max();
      if (c.state == phase::ending)
        reset(hdl);
      else
        end(hdl, c,
            {errc::timed_out, fmt::format("{} did not say hello within {} ms", c.address, greeting_ms()), {}},
            farewell::none);
    }
    schedule();
  }

 private:
  static std::string describe_peer(const connection& c) {
    return c.peer.engine.empty() ? c.address : fmt::format("engine {} ({})", c.peer.engine, c.address);
  }

  /// One that is not ending.
  connection* find(connection_id id) {
    auto i = s_.handles.find(id);
    return i == s_.handles.end() ? nullptr : &s_.connections.at(i->second);
  }

  connection& add(handle hdl, connection_id id) {
    self_->configure_read(hdl, caf::io::receive_policy::at_most(greeting_read_bytes));
    self_->ack_writes(hdl, true);
    auto& c = s_.connections[hdl];
    c.id = id;
    c.deadline = now_of(self_) + s_.settings.greeting_timeout;
    s_.handles[id] = hdl;
    schedule();
    return c;
  }

  /// One pending tick while any connection is greeting or ending. It never waits longer than a farewell,
  /// because one that begins later may end sooner.
  void schedule() {
    if (s_.tick_pending) return;
    auto next = time_point::max();
    for (auto& [hdl, c] : s_.connections)
      if (c.state != phase::open) next = std::min(next, c.deadline);
    if (next == time_point::max()) return;
    s_.tick_pending = true;
    auto delay = std::clamp(next - now_of(self_), duration(0), duration(farewell_timeout));
    tell_after(delay, caf::actor_cast<caf::actor>(self_), tick{});
  }

  void write(handle hdl, connection& c, const wire::bytes& message) {
    if (c.unsent_bytes + message.size() > limits::control_write_bytes)
      return end(hdl, c, too_much(c, "does not read", "unsent", limits::control_write_bytes), farewell::none);
    c.unsent_bytes += message.size();
    auto& buffer = self_->wr_buf(hdl);
    auto* first = reinterpret_cast<const char*>(message.data());
    buffer.insert(buffer.end(), first, first + message.size());
    self_->flush(hdl);
  }

  static error too_much(const connection& c, std::string_view what, std::string_view which,
                        std::size_t limit) {
    return {errc::limit_exceeded,
            fmt::format("{} {}: more than {} {} bytes of its control connection", describe_peer(c), what,
                        limit, which),
            {}};
  }

  /// Tells the other side why, then closes.
  void refuse(handle hdl, connection& c, const error& reason) {
    say("{}: {}", describe_peer(c), to_string(reason));
    write(hdl, c, wire::encode(refusal_message{for_wire(reason)}));
    end(hdl, c, reason, farewell::last_words);
  }

  void evict(connection_id id) {
    auto i = s_.handles.find(id);
    if (i == s_.handles.end()) return;  // it is ending already
    auto& c = s_.connections.at(i->second);
    error reason{errc::limit_exceeded,
                 fmt::format("{} said no hello yet and makes room for others: "
                             "limits.control_unauthenticated = {} are open",
                             c.address, s_.settings.admission.unauthenticated_max),
                 {}};
    say("{}", to_string(reason));
    end(i->second, c, reason, farewell::none);
  }

  /// Users hear of it now; the entry goes when CAF has let go of the socket.
  void end(handle hdl, connection& c, const error& reason, farewell words) {
    if (c.state == phase::ending) return;
    if (c.state == phase::open && reason.code == errc::limit_exceeded) say("{}", to_string(reason));
    tell_users(c, reason);
    s_.handles.erase(c.id);
    c.state = phase::ending;
    c.deadline = words == farewell::none ? time_point::max() : now_of(self_) + farewell_timeout;
    if (words == farewell::none)
      reset(hdl);
    else if (c.unsent_bytes == 0)
      send_fin(hdl);
    schedule();
  }

  void tell_users(const connection& c, const error& reason) {
    for (auto& user : c.users)
      tell(user, control_closed{c.state == phase::greeting ? c.ticket : 0, c.id, reason});
  }

  /// CAF closes by sending a FIN and then waits for ever for the other side's. A handle's number is its
  /// socket: what ends it here is seen by the loop, which then says so.
  static void send_fin(handle hdl) { ::shutdown(static_cast<int>(hdl.id()), SHUT_WR); }
  /// Drops what is still to be read or sent. Reading to the end of a shut down socket would take as long as
  /// the other side goes on sending.
  static void reset(handle hdl) {
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    (void)::connect(static_cast<int>(hdl.id()), &none, sizeof none);
  }

  void answer_when_ended() {
    if (s_.ending && s_.connections.empty() && s_.ended.pending()) s_.ended.deliver(true);
  }

  template <class... Ts>
  void say(fmt::format_string<Ts...> text, Ts&&... values) {
    auto held_back = s_.refusal_log.say(now_of(self_));
    if (!held_back) return;
    auto line = fmt::format(text, std::forward<Ts>(values)...);
    if (*held_back > 0) line += fmt::format(" ({} more lines like this were held back)", *held_back);
    s_.settings.log.warn("control-refused", "{}", line);
  }

  std::int64_t greeting_ms() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(s_.settings.greeting_timeout).count();
  }

  void handle_message(handle hdl, connection& c, control::message_stream::message message) {
    if (c.state == phase::open) return deliver(hdl, c, std::move(message));
    switch (message.header.type) {
      case message_type::hello:
        return c.dialled ? unexpected_message(hdl, c, message) : greeted(hdl, c, message);
      case message_type::hello_ok:
        return c.dialled ? answered(hdl, c, message) : unexpected_message(hdl, c, message);
      case message_type::refusal:
        return c.dialled ? refused(hdl, c, message) : unexpected_message(hdl, c, message);
      default:
        return unexpected_message(hdl, c, message);
    }
  }

  void unexpected_message(handle hdl, connection& c, const control::message_stream::message& message) {
    refuse(hdl, c,
           {errc::wire_unsupported,
            fmt::format("message {} is not expected before hello", to_string(message.header.type)),
            {}});
  }

  void greeted(handle hdl, connection& c, const control::message_stream::message& message) {
    auto hello = wire::decode_payload<hello_message>(message.payload);
    if (!hello) return refuse(hdl, c, hello.error());
    if (hello->protocol_max < limits::protocol_min || hello->protocol_min > limits::protocol_max)
      return refuse(hdl, c,
                    {errc::wire_version,
                     fmt::format("{} speaks protocol {} to {}, {} speaks {} to {}", hello->self.engine,
                                 hello->protocol_min, hello->protocol_max, s_.settings.self.engine,
                                 limits::protocol_min, limits::protocol_max),
                     {}});
    if (hello->features != 0)
      return refuse(hdl, c,
                    {errc::wire_unsupported,
                     fmt::format("{} needs feature bits {:#x}, which {} does not know", hello->self.engine,
                                 hello->features, s_.settings.self.engine),
                     {}});
    if (!s_.settings.token.admits(hello->token))
      return refuse(hdl, c,
                    {errc::peer_unauthorized,
                     fmt::format("{} sent {}, and {} serves only peers with its token: both need the "
                                 "same secret in their security.token_file",
                                 hello->self.engine, hello->token.empty() ? "no token" : "a wrong token",
                                 s_.settings.self.engine),
                     {}});
    c.peer = hello->self;
    s_.admission->authenticated(c.id.value);
    open(hdl, c);
    write(hdl, c,
          wire::encode(
              hello_ok_message{std::min(hello->protocol_max, limits::protocol_max), s_.settings.self}));
  }

  void answered(handle hdl, connection& c, const control::message_stream::message& message) {
    auto ok = wire::decode_payload<hello_ok_message>(message.payload);
    if (!ok) return refuse(hdl, c, ok.error());
    if (ok->protocol < limits::protocol_min || ok->protocol > limits::protocol_max)
      return refuse(
          hdl, c,
          {errc::wire_version,
           fmt::format("{} answers with protocol {}, {} speaks {} to {}", ok->self.engine, ok->protocol,
                       s_.settings.self.engine, limits::protocol_min, limits::protocol_max),
           {}});
    c.peer = ok->self;
    open(hdl, c);
    tell(c.users.front(), control_opened{c.ticket, c.id, c.peer});
  }

  void refused(handle hdl, connection& c, const control::message_stream::message& message) {
    auto refusal = wire::decode_payload<refusal_message>(message.payload);
    end(hdl, c, refusal ? refusal->reason : refusal.error(), farewell::last_words);
  }

  void open(handle hdl, connection& c) {
    c.state = phase::open;
    self_->configure_read(hdl, caf::io::receive_policy::at_most(open_read_bytes));
    c.stream.allow(limits::control_message_bytes);
  }

  void deliver(handle hdl, connection& c, control::message_stream::message message) {
    auto user = c.dialled ? c.users.front() : route(c, message.header.type);
    if (!user)
      return refuse(hdl, c,
                    {errc::wire_unsupported,
                     fmt::format("engine {} does not serve {} here", s_.settings.self.engine,
                                 to_string(message.header.type)),
                     {}});
    auto bytes = message.payload.size() + message_overhead_bytes;
    c.unprocessed_bytes += bytes;
    if (c.unprocessed_bytes > limits::control_unprocessed_bytes)
      return end(
          hdl, c,
          too_much(c, "sends faster than it is served", "unprocessed", limits::control_unprocessed_bytes),
          farewell::none);
    if (std::find(c.users.begin(), c.users.end(), user) == c.users.end()) c.users.push_back(user);
    tell(user,
         control_received{c.id, c.peer, message.header, tracked(c.id, bytes, std::move(message.payload))});
  }

  /// A payload whose last user tells us.
  std::shared_ptr<const wire::bytes> tracked(connection_id id, std::size_t bytes, wire::bytes payload) {
    auto* owned = new wire::bytes(std::move(payload));
    return {owned, [id, bytes, us = caf::actor_cast<caf::actor>(self_)](const wire::bytes* p) {
              delete p;
              tell(us, control_processed{id, bytes});
            }};
  }

  caf::actor route(const connection& c, message_type type) const {
    switch (type) {
      case message_type::register_rank:
      case message_type::unregister_rank:
      case message_type::topology_query:
        return s_.routes.bootstrap;
      case message_type::connect_request:
      case message_type::abort:
      case message_type::drained:
      case message_type::room_result:
        return s_.routes.transfer_engine;
      case message_type::refusal: {  // of what was answered on this connection
        bool engaged = std::find(c.users.begin(), c.users.end(), s_.routes.transfer_engine) != c.users.end();
        return engaged ? s_.routes.transfer_engine : caf::actor();
      }
      case message_type::drain_request:
        return s_.routes.drain;
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
  self->state.admission.emplace(settings.admission);
  for (int listener : listeners) self->add_doorman(listener);
  return {
      [self](control_routes& routes) { self->state.routes = std::move(routes); },
      [self](const control_dial& call) { control_broker(self).dial(call); },
      [self](const control_send& call) { control_broker(self).send(call); },
      [self](const control_close& call) { control_broker(self).close(call); },
      [self](const caf::io::new_connection_msg& m) { control_broker(self).accepted(m.handle); },
      [self](const control_processed& call) { control_broker(self).processed(call); },
      [self](const caf::io::new_data_msg& m) { control_broker(self).received(m); },
      [self](const caf::io::data_transferred_msg& m) { control_broker(self).sent(m); },
      [self](const caf::io::connection_closed_msg& m) { control_broker(self).lost(m.handle); },
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
