// The parts of a rank, their ports, and the way of events between them.
#include "tools/sim/rank_host.hpp"

#include "actors/transfer_engine/room_frames.hpp"

#include <algorithm>

namespace handoff::sim {
namespace {

source_rooms_settings source_settings(const rank_settings& s, pool_memory& memory,
                                      const engine_identity& self, std::shared_ptr<event_port> events,
                                      const logger& log) {
  source_rooms_settings out;
  out.rooms = s.source;
  out.desk = {memory.layout(), std::move(events), memory.source_rows(), s.slots,
              s.rooms_max,     s.tombstones_max,  s.tombstones,         log,
              s.leases};
  out.rooms.layout = memory.layout();
  out.rooms.metadata_region = memory.source_row_region();
  out.rooms.origin = self.engine;
  return out;
}

sink_rooms_settings sink_settings(const rank_settings& s, pool_memory& memory, const engine_identity& self,
                                  std::shared_ptr<event_port> events, const logger& log) {
  sink_rooms_settings out;
  out.rooms = s.sink;
  out.desk = {memory.layout(), std::move(events), memory.sink_rows(), s.slots,
              s.rooms_max,     s.tombstones_max,  s.tombstones,       log,
              s.leases};
  out.rooms.layout = memory.layout();
  out.rooms.origin = self.engine;
  return out;
}

peer_desk_settings desk_settings(const rank_settings& s, const pool_memory& memory,
                                 const engine_identity& self, std::string control_address,
                                 const logger& log) {
  peer_desk_settings out;
  out.self = self;
  out.layout = memory.layout();
  out.control_address = std::move(control_address);
  out.provider = "sim";
  out.connect_timeout = s.connect_timeout;
  out.peers_max = s.peers_max;
  out.sessions = s.sessions;
  out.log = log;
  return out;
}

logger make_logger(kernel& k, const std::string& name) {
  if (!k.traced) return {};
  return {[&k, name](log_level, std::string_view event, std::string_view text) {
            k.trace(name, "log {}: {}", event, text);
          },
          log_level::debug};
}

}  // namespace

rank_host::rank_host(kernel& k, control_net& net, std::size_t slot, engine_identity self,
                     std::string control_address, const std::string& bootstrap_address,
                     rank_settings settings, std::vector<offer_record>& offers, std::vector<room_end>& ends,
                     engine_logic& logic, duration skew, int drift_ppm)
    : host(k, slot, self, settings.transport, skew, drift_ppm),
      net_(net),
      settings_(std::move(settings)),
      offers_(offers),
      ends_(ends),
      logic_(logic),
      memory_(settings_.long_pages, settings_.slots),
      source_port_(*this, room_side::source),
      sink_port_(*this, room_side::sink),
      desk_port_(*this),
      directory_port_(*this),
      events_(std::make_shared<events_port>(*this)),
      directory_({bootstrap_address, settings_.renew, settings_.retry, settings_.resolve_timeout,
                  make_logger(k, self.engine)},
                 directory_port_),
      desk_(desk_settings(settings_, memory_, self, control_address, make_logger(k, self.engine)),
            *transport_, desk_port_),
      source_(source_settings(settings_, memory_, self, events_, make_logger(k, self.engine)), source_port_),
      sink_(sink_settings(settings_, memory_, self, events_, make_logger(k, self.engine)), sink_port_) {
  for (std::size_t i = 0; i < memory_.regions(); ++i) {
    const auto region = memory_.region(i);
    (void)transport_->register_region(
        {region.data(), region.size(), memory_kind::host, i + 1 < memory_.regions()});
  }
  for (const auto& c : memory_.layout()->components) {
    if (c.kind != component_kind::kv) continue;
    auto& pages = free_.emplace_back();
    for (std::uint32_t p = 0; p < c.pages; ++p) pages.push_back({p});
    for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[k.random.below(i)]);
  }
  net_.listen(control_address, *this);
  register_rank_message message;
  message.self = self;
  message.control_address = std::move(control_address);
  message.lease_ms = settings_.lease_ms;
  post(part::engine, part::directory, [this, r = registration{message}] { feed<part::directory>(r); });
}

// -- events of parts ---------------------------------------------------------------------------------------

void rank_host::after(part p) {
  ++k_.counts.events;
  k_.mix(static_cast<std::uint64_t>(k_.now().time_since_epoch().count()) * 31 + index() * 8 +
         static_cast<std::uint64_t>(p));
  switch (p) {
    case part::source:
      (void)source_.take_ended();
      arm(p, source_.deadline());
      return check_gate();
    case part::sink:
      (void)sink_.take_ended();
      arm(p, sink_.deadline());
      return check_gate();
    case part::desk:
      return arm(p, desk_.deadline());
    case part::directory:
      for (auto& [question, answer] : directory_.take_answers())
        post(p, part::desk, [this, a = std::move(answer)]() mutable { feed<part::desk>(a); });
      return arm(p, directory_.deadline());
    default:
      return;
  }
}

void rank_host::tick(part p) {
  if (p == part::source) source_.tick(now());
  if (p == part::sink) sink_.tick(now());
  if (p == part::desk) desk_.tick(now());
  if (p == part::directory) directory_.tick(now());
  after(p);
}

void rank_host::rearm() {
  for (auto p : {part::source, part::sink, part::desk, part::directory})
    later(duration(0), [this, p] { tick(p); });
}

void rank_host::on_events(std::span<transport::event> events) {
  std::vector<transport::event> batch(std::make_move_iterator(events.begin()),
                                      std::make_move_iterator(events.end()));
  post(part::network, part::desk, [this, batch = std::move(batch)]() mutable { feed<part::desk>(batch); });
}

void rank_host::on_control(part to, control_event& event) {
  std::visit(
      [&](auto& e) {
        if (to == part::desk)
          feed<part::desk>(e);
        else
          feed<part::directory>(e);
      },
      event);
}

std::optional<part> rank_host::route(message_type type) const {
  if (type == message_type::connect_request || is_last_word(type)) return part::desk;
  return {};
}

// -- ports -------------------------------------------------------------------------------------------------

template <class Call>
void rank_host::rooms_port::pass(Call call) {
  const auto from = side == room_side::source ? part::source : part::sink;
  me.post(from, part::desk, [this, call = std::move(call)]() mutable { me.feed<part::desk>(call); });
}

void rank_host::rooms_port::submit(submit_call call) {
  me.note_submit(call);
  pass(std::move(call));
}

void rank_host::rooms_port::send(frame_call call) {
  if (const auto* m = std::get_if<publish_message>(&call.message)) me.exposed_[1].insert(m->key.room);
  if (const auto* m = std::get_if<announce_message>(&call.message)) {
    // Repeated by the same call it renews; another call is another attempt.
    auto& [last, since] = me.last_attempt_[m->key.room];
    const auto* room = me.find(room_side::sink, m->key.room);
    const auto call = room != nullptr ? room->since : time_point{};
    if (m->key.attempt < last || (m->key.attempt == last && call != since))
      me.k_.violate(me.name(), "{} is announced after attempt {}", to_string(m->key), last.value);
    last = m->key.attempt;
    since = call;
  }
  me.k_.trace(
      me.name(), "{} {} to peer {}", std::visit([](const auto& m) { return to_string(m.key); }, call.message),
      std::visit([](const auto& m) { return to_string(std::decay_t<decltype(m)>::type); }, call.message),
      call.peer.value);
  pass(std::move(call));
}

void rank_host::rooms_port::fence(fence_call call) {
  ++me.k_.counts.other[side == room_side::source ? "fences by a source" : "fences by a sink"];
  pass(call);
}

void rank_host::desk_port::dial(std::uint64_t ticket, const std::string& address) {
  me.net_.dial(me, part::desk, ticket, address);
}
void rank_host::desk_port::send(control_send call) {
  me.net_.send(me, call);
}
void rank_host::desk_port::close(control_close call) {
  me.net_.close(me, call.connection);
}
void rank_host::desk_port::resolve(const std::string& peer, rank_coord rank, engine_role role) {
  me.post(part::desk, part::directory, [this, peer, rank, role] {
    me.directory_.resolve(me.next_question_++, peer, rank, role, me.now());
    me.after(part::directory);
  });
}
void rank_host::desk_port::tell_source(rank_event event) {
  me.post(part::desk, part::source, [this, event = std::move(event)]() mutable {
    std::visit([&](auto& e) { me.feed<part::source>(e); }, event);
    if (const auto* frame = std::get_if<room_frame>(&event)) me.check_superseded(frame->message);
  });
}
void rank_host::desk_port::tell_sink(rank_event event) {
  me.post(part::desk, part::sink, [this, event = std::move(event)]() mutable {
    std::visit([&](auto& e) { me.feed<part::sink>(e); }, event);
  });
}

void rank_host::directory_port::dial(std::uint64_t ticket, const std::string& address) {
  me.net_.dial(me, part::directory, ticket, address);
}
void rank_host::directory_port::send(control_send call) {
  me.net_.send(me, call);
}
void rank_host::directory_port::close(control_close call) {
  me.net_.close(me, call.connection);
}

}  // namespace handoff::sim
