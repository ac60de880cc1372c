// The composition root: makes the actors and the transport of one runtime, and is their engine-facing handle.
#include "actors/runtime.hpp"

#include "actors/bootstrap/bootstrap_actor.hpp"
#include "actors/bootstrap/bootstrap_client_actor.hpp"
#include "actors/control/control_broker.hpp"
#include "actors/control/socket.hpp"
#include "actors/decode/decode_actor.hpp"
#include "actors/monitor/monitor_actor.hpp"
#include "actors/prefill/prefill_actor.hpp"
#include "actors/runtime/composition.hpp"
#include "actors/runtime/verdict_queue.hpp"
#include "actors/transfer_engine/transfer_engine_actor.hpp"
#include "transport/fabric/fabric_transport.hpp"
#include "transport/sabotage.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include <caf/io/all.hpp>

namespace handoff {
namespace {

/// A peer that is stopped does not answer the end of a connection; closing does not wait for it any longer.
constexpr auto control_end_timeout = std::chrono::seconds(1);

log_level level_of(const std::string& name) {
  if (name == "debug") return log_level::debug;
  if (name == "warn") return log_level::warn;
  if (name == "error") return log_level::error;
  return log_level::info;
}

/// Hands the transport's events to the transfer engine: one message per batch.
class batch_sink final : public transport::event_sink {
 public:
  void serve(transfer_engine_interface target) { target_ = std::move(target); }
  void on_events(std::span<transport::event> events) override {
    auto batch = std::make_shared<std::vector<transport::event>>(std::make_move_iterator(events.begin()),
                                                                 std::make_move_iterator(events.end()));
    tell(target_, transport_batch{std::move(batch)});
  }

 private:
  transfer_engine_interface target_;
};

struct system_config : caf::actor_system_config {
  explicit system_config(std::uint32_t workers) {
    // Outside threads wake idle actors in ~12 us with the sharing policy, ~140 us with CAF's default.
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", std::size_t{workers});
    load<caf::io::middleman>();
  }
};

std::vector<component_pages> to_runs(std::span<const page_span> spans) {
  std::vector<component_pages> result;
  for (const auto& span : spans) {
    component_pages pages{span.component, span.first_token, span.prefix_tokens, {}};
    for (auto page : span.pages) {
      auto& runs = pages.runs;
      if (!runs.empty() && runs.back().first.value + runs.back().count == page.value)
        ++runs.back().count;
      else
        runs.push_back({page, 1});
    }
    result.push_back(std::move(pages));
  }
  return result;
}

}  // namespace

struct runtime::impl {
  explicit impl(runtime_options o)
      : options(std::move(o)),
        log(options.log, level_of(options.config.log.level)),
        incarnation(new_incarnation()),
        events(std::make_shared<event_channel>(options.config.limits.events)),
        config(options.config.actors.workers) {}

  engine_identity identity() const {
    return {options.config.engine.name, incarnation, options.rank, options.role};
  }
  error listen();
  void spawn_control();
  void spawn_rank();
  void announce_rank();
  status_report ask_status();
  bool quiet(const quiesce_call& call, std::chrono::milliseconds deadline);
  bool busy(room_side side, room_id room) const { return active[side == room_side::sink].contains(room); }

  runtime_options options;
  logger log;
  incarnation_id incarnation;
  std::vector<pool_description> pools;
  std::shared_ptr<const layout_descriptor> layout;
  std::vector<std::byte> sink_rows, source_rows;
  std::shared_ptr<event_channel> events;
  std::vector<int> listeners;
  std::string control_address, bootstrap_address;
  batch_sink sink;
  std::shared_ptr<transport::transport> transport;

  system_config config;
  std::unique_ptr<caf::actor_system> system;
  caf::actor broker;
  bootstrap_client_interface directory;
  bootstrap_interface registry;
  monitor_interface monitor;
  transfer_engine_interface engine;
  prefill_interface prefill;
  decode_interface decode;

  // The engine's thread only.
  std::unordered_set<room_id> active[2];                ///< by side: called for and not released yet
  std::unordered_map<room_id, queued_event> succeeded;  ///< sink rooms whose row was not taken yet
  bool started = false, draining = false, closed = false;
};

// -- making and ending -------------------------------------------------------------------------------------

expected<std::unique_ptr<runtime>> runtime::create(runtime_options options) {
  if (auto valid = check_config(options.config, "configuration"); !valid)
    return tl::make_unexpected(valid.error());
  auto state = std::make_unique<impl>(std::move(options));
  if (auto failed = state->listen()) return tl::make_unexpected(failed);
  state->system = std::make_unique<caf::actor_system>(state->config);
  state->spawn_control();
  return std::unique_ptr<runtime>(new runtime(std::move(state)));
}

runtime::runtime(std::unique_ptr<impl> state) : impl_(std::move(state)) {}
runtime::~runtime() {
  close();
}

/// A bootstrap process listens where the registry is looked for; other engines on a port of their own, and
/// there too if they serve the registry.
error runtime::impl::listen() {
  const auto& c = options.config;
  auto open = [&](const std::string& where, std::string& bound) -> error {
    auto address = parse_host_port(where);
    auto fd = address ? control::listen_on(*address) : tl::make_unexpected(address.error());
    if (!fd) return fd.error();
    listeners.push_back(*fd);
    auto actual = control::bound_address(*fd);
    if (!actual) return actual.error();
    bound = to_string(*actual);
    return {};
  };
  bool serves = options.role == engine_role::bootstrap || c.bootstrap.serve;
  bootstrap_address = c.bootstrap.address;
  if (serves)
    if (auto failed = open(c.bootstrap.bind, bootstrap_address)) return failed;
  control_address = bootstrap_address;
  if (options.role != engine_role::bootstrap)
    if (auto failed = open(c.control.bind, control_address)) return failed;
  if (!c.control.advertise.empty()) {
    auto bound = parse_host_port(control_address);
    if (bound) control_address = to_string(host_port{c.control.advertise, bound->port});
  }
  return {};
}

void runtime::impl::spawn_control() {
  const auto& c = options.config;
  broker = spawn_control_broker(
      *system, {identity(), c.limits.control_connections, from_ms(c.timeouts.connect_ms), log},
      std::move(listeners));
  listeners.clear();
  monitor = spawn_monitor(*system, from_ms(c.timeouts.status_ms));
  control_routes routes;
  if (options.role == engine_role::bootstrap || c.bootstrap.serve) {
    registry_context context;
    context.incarnation = incarnation;
    registry = spawn_bootstrap(*system, context, broker, log);
    routes.bootstrap = caf::actor_cast<caf::actor>(registry);
    tell(monitor, monitored{{{"bootstrap", routes.bootstrap}}});
  }
  tell(broker, routes);
}

void runtime::impl::spawn_rank() {
  const auto& c = options.config;
  const auto& t = c.timeouts;
  auto slots = c.memory.slots;
  sink_rows.resize(std::size_t{slots} * row_schema::row_bytes);
  source_rows.resize(std::size_t{slots} * row_schema::row_bytes);

  directory = spawn_bootstrap_client(
      *system,
      {bootstrap_address, from_ms(t.bootstrap_renew_ms), from_ms(t.retry_ms), from_ms(t.connect_ms), log},
      broker);
  peer_desk_settings s;
  s.self = identity();
  s.compatibility = make_compatibility(c);
  s.rules = c.compatibility.rules;
  s.layout = layout;
  s.control_address = control_address;
  s.provider = c.transport.provider;
  s.host_id = transport::fabric::local_host_id();
  s.connect_timeout = from_ms(t.connect_ms);
  s.peers_max = c.transport.peers_max;
  s.sessions = session_context(c);
  s.log = log;
  engine = spawn_transfer_engine(*system, std::move(s), transport, broker, directory);
  sink.serve(engine);

  room_desk_settings desk{
      layout, events, source_rows, slots, c.limits.rooms, c.limits.tombstones, from_ms(t.tombstone_ms), log};
  prefill = spawn_prefill(*system, {make_sender_context(c, layout, options.rank, log), desk}, engine);
  desk.rows = sink_rows;
  decode = spawn_decode(*system, {make_receiver_context(c, layout, options.rank, log), desk}, engine);

  auto as_actor = [](const auto& handle) { return caf::actor_cast<caf::actor>(handle); };
  tell(engine, rank_actors{as_actor(prefill), as_actor(decode)});
  control_routes routes;
  routes.transfer_engine = as_actor(engine);
  monitored all{{{"bootstrap_client", as_actor(directory)},
                 {"transfer_engine", as_actor(engine)},
                 {"prefill", as_actor(prefill)},
                 {"decode", as_actor(decode)}}};
  if (registry) {
    routes.bootstrap = as_actor(registry);
    all.actors.emplace_back("bootstrap", routes.bootstrap);
  }
  tell(broker, std::move(routes));
  tell(monitor, std::move(all));
}

void runtime::impl::announce_rank() {
  register_rank_message message;
  message.self = identity();
  message.topology = options.topology;
  message.control_address = control_address;
  message.lease_ms = options.config.timeouts.bootstrap_lease_ms;
  tell(directory, registration{std::move(message)});
}

expected<component_id> runtime::register_pool(const pool_description& pool) {
  if (impl_->started)
    return fail(errc::room_state, "pools are registered before start: their layout is shown to peers");
  if (auto bad = check_pool(pool, impl_->pools.size())) return tl::make_unexpected(bad);
  impl_->pools.push_back(pool);
  return component_id{static_cast<std::uint16_t>(impl_->pools.size() - 1)};
}

error runtime::start() {
  auto& s = *impl_;
  if (s.closed) return {errc::closed, "the runtime is closed", {}};
  if (s.started) return {errc::room_state, "the runtime was started already", {}};
  if (s.options.role == engine_role::bootstrap) {
    s.started = true;
    return {};
  }
  if (s.pools.empty()) return {errc::room_state, "no pool was registered before start", {}};
  s.layout = std::make_shared<const layout_descriptor>(make_layout(s.options, s.pools));

  const auto& provider = s.options.config.transport.provider;
  auto allowed =
      provider == "auto" ? std::vector<std::string>{"shm", "tcp"} : std::vector<std::string>{provider};
  std::unique_ptr<transport::transport> made = transport::fabric::make_fabric_transport(
      transport_settings(s.options.config, s.incarnation), s.sink, allowed,
      [log = s.log](const std::string& text) { log.info("provider", "{}", text); });
  if (made->providers().empty())
    return {errc::transport_provider,
            fmt::format("libfabric offers none of the wanted providers ({}) here; see the log", provider),
            {}};
  if (s.options.sabotage != sabotage_kind::none)
    made = std::make_unique<transport::sabotage_transport>(std::move(made), s.options.sabotage,
                                                           s.options.sabotage_seed);
  s.transport = std::move(made);
  s.spawn_rank();

  auto add = [&](std::byte* base, std::uint64_t bytes, bool shown) {
    auto id = s.transport->register_region({base, bytes, memory_kind::host, shown});
    return id ? error{} : id.error();
  };
  for (const auto& pool : s.pools)
    for (const auto& b : pool.buffers)
      if (auto failed = add(b.base, b.layout.pages * b.layout.item_bytes, true)) return failed;
  if (auto failed = add(s.sink_rows.data(), s.sink_rows.size(), true)) return failed;
  if (auto failed = add(s.source_rows.data(), s.source_rows.size(), false)) return failed;
  s.announce_rank();
  s.started = true;
  return {};
}

void runtime::close() {
  auto& s = *impl_;
  if (s.closed) return;
  s.closed = true;
  {
    // The transport is closed by nobody else: after its only caller ended, and while events can still be sent
    // to it.
    caf::scoped_actor self{*s.system};
    auto stop = [&](const auto& actor) {
      if (!actor) return;
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
      self->wait_for(actor);
    };
    stop(s.prefill);
    stop(s.decode);
    stop(s.engine);
    if (s.transport) s.transport->close();
    stop(s.directory);
    stop(s.monitor);
    stop(s.registry);
    if (s.broker)
      self->request(s.broker, control_end_timeout, control_end{})
          .receive([](bool) {}, [](const caf::error&) {});
    stop(s.broker);
  }
  s.prefill = prefill_interface();
  s.decode = decode_interface();
  s.engine = transfer_engine_interface();
  s.sink.serve(transfer_engine_interface());
  s.directory = bootstrap_client_interface();
  s.monitor = monitor_interface();
  s.registry = bootstrap_interface();
  s.broker = caf::actor();
  s.system.reset();  // waits for the actors
}

error runtime::drain(std::chrono::milliseconds deadline) {
  auto& s = *impl_;
  s.draining = true;
  if (s.closed || !s.prefill || s.quiet({{}, true}, deadline)) return {};
  return {errc::timed_out,
          fmt::format("{} rooms had not ended after {} ms", status().rooms, deadline.count()),
          {}};
}

std::string runtime::endpoint() const {
  return impl_->bootstrap_address;
}
std::string runtime::control_address() const {
  return impl_->control_address;
}

// -- rooms -------------------------------------------------------------------------------------------------

namespace {

error not_serving(bool started, bool closed, bool draining) {
  if (closed) return {errc::closed, "the runtime is closed", {}};
  if (draining) return {errc::closed, "the runtime is draining: it takes no new rooms", {}};
  if (!started) return {errc::room_state, "start comes before rooms", {}};
  return {};
}

error check_label(std::string_view label) {
  if (label.size() <= limits::label_bytes) return {};
  return {errc::invalid_argument,
          fmt::format("a label of {} bytes; at most {}", label.size(), limits::label_bytes),
          {}};
}

error check_spans(const layout_descriptor& layout, std::span<const page_span> pages, std::uint64_t tokens) {
  return layout::check_pages(layout, to_runs(pages), tokens);
}

}  // namespace

error runtime::offer(room_id room, std::span<const page_span> pages, std::uint64_t tokens,
                     std::chrono::milliseconds lease, std::string_view label) {
  auto& s = *impl_;
  if (auto bad = not_serving(s.started, s.closed, s.draining)) return bad;
  if (auto bad = check_label(label)) return bad;
  if (auto bad = check_spans(*s.layout, pages, tokens)) return bad;
  if (s.busy(room_side::source, room))
    return {errc::room_duplicate, fmt::format("room {} is offered here already", room.value), {}};
  s.active[0].insert(room);
  tell(s.prefill, offer_call{room, to_runs(pages), tokens, lease, std::string(label)});
  return {};
}

error runtime::send(room_id room, const chunk& what, const metadata_row* row) {
  auto& s = *impl_;
  if (s.closed) return {errc::closed, "the runtime is closed", {}};
  if (!s.busy(room_side::source, room))
    return {errc::room_unknown, fmt::format("room {} was not offered", room.value), {}};
  if (what.last != (row != nullptr))
    return {errc::invalid_argument, "the metadata row comes with the last chunk, and only with it", {}};
  if (what.first_token > what.last_token || what.first_layer > what.last_layer)
    return {errc::invalid_argument,
            fmt::format("tokens [{}, {}) of layers [{}, {}) are no range", what.first_token, what.last_token,
                        what.first_layer, what.last_layer),
            {}};
  send_call call{room, {what.first_token, what.last_token, what.first_layer, what.last_layer}, what.last, {}};
  if (row) call.row = *row;
  tell(s.prefill, call);
  return {};
}

error runtime::announce(room_id room, std::string_view peer, std::string_view label) {
  auto& s = *impl_;
  if (auto bad = not_serving(s.started, s.closed, s.draining)) return bad;
  if (auto bad = check_label(label)) return bad;
  if (peer.empty())
    return {errc::invalid_argument, "announce needs the source's bootstrap endpoint or name", {}};
  if (s.busy(room_side::sink, room))
    return {errc::room_duplicate, fmt::format("room {} is announced here already", room.value), {}};
  if (s.succeeded.contains(room))
    return {errc::room_duplicate, fmt::format("room {} succeeded and was not committed yet", room.value), {}};
  s.active[1].insert(room);
  tell(s.decode, announce_call{room, std::string(peer), std::string(label)});
  return {};
}

error runtime::publish(room_id room, std::span<const page_span> pages, std::uint64_t tokens) {
  auto& s = *impl_;
  if (s.closed) return {errc::closed, "the runtime is closed", {}};
  if (!s.busy(room_side::sink, room))
    return {errc::room_unknown, fmt::format("room {} was not announced", room.value), {}};
  if (auto bad = check_spans(*s.layout, pages, tokens)) return bad;
  tell(s.decode, publish_call{room, to_runs(pages), tokens});
  return {};
}

error runtime::commit(room_id room, metadata_row& row) {
  auto& s = *impl_;
  auto i = s.succeeded.find(room);
  if (i == s.succeeded.end())
    return {errc::room_state, fmt::format("room {} has no success to commit", room.value), {}};
  auto [event, slot] = i->second;
  s.succeeded.erase(i);
  auto memory =
      std::span(s.sink_rows).subspan(std::size_t{slot.value} * row_schema::row_bytes, row_schema::row_bytes);
  auto read = read_row(memory, event.key);
  clear_stamp(memory);
  if (!s.closed) tell(s.decode, commit_call{event.key, slot});
  if (!read) return read.error();
  row = *read;
  return {};
}

std::size_t runtime::take_events(std::span<room_event> out) {
  auto& s = *impl_;
  std::size_t count = 0;
  queued_event queued;
  while (count < out.size() && s.events->pop(queued)) {
    const auto& e = queued.event;
    if (e.what == room_event::kind::released)
      s.active[e.side == room_side::sink].erase(e.key.room);
    else if (e.side == room_side::sink && e.poll == kv_poll::success)
      s.succeeded[e.key.room] = queued;
    out[count++] = e;
  }
  return count;
}

bool runtime::arm() {
  return impl_->events->arm();
}
int runtime::wait_fd() const {
  return impl_->events->wait_fd();
}

error runtime::abort(room_id room, std::string_view reason) {
  auto& s = *impl_;
  if (s.closed || !s.started || !s.prefill) return {};
  abort_call call{room, {errc::aborted, std::string(reason.substr(0, limits::error_detail_bytes)), {}}};
  if (s.busy(room_side::source, room)) tell(s.prefill, call);
  if (s.busy(room_side::sink, room) || s.succeeded.erase(room) > 0) tell(s.decode, call);
  return {};
}

bool runtime::quiesce(room_id room, std::chrono::milliseconds deadline) {
  auto& s = *impl_;
  if (s.closed || !s.started || !s.prefill) return true;
  return s.quiet({room, false}, deadline);
}

/// Both sides are asked one after the other, so the bound holds for each: a room has one side here, or ends
/// on both.
bool runtime::impl::quiet(const quiesce_call& call, std::chrono::milliseconds deadline) {
  caf::scoped_actor self{*system};
  bool quiet = true;
  auto silent = [&](const caf::error&) { quiet = false; };
  self->request(prefill, deadline, call).receive([&](bool q) { quiet = quiet && q; }, silent);
  self->request(decode, deadline, call).receive([&](bool q) { quiet = quiet && q; }, silent);
  return quiet;
}

// -- status ------------------------------------------------------------------------------------------------

status_report runtime::impl::ask_status() {
  status_report report;
  if (!monitor) return report;
  caf::scoped_actor self{*system};
  self->request(monitor, 2 * from_ms(options.config.timeouts.status_ms), status_call{})
      .receive([&](status_report& r) { report = std::move(r); },
               [&](const caf::error&) { report.silent.emplace_back("monitor"); });
  return report;
}

runtime_status runtime::status() {
  runtime_status result;
  auto report = impl_->ask_status();
  std::unordered_map<std::string, std::uint64_t> sums;
  for (const auto& part : report.parts) {
    for (const auto& [name, value] : part.counts) sums[name] += value;
    if (part.actor == "transfer_engine") {
      result.peer_texts = part.lines;
      for (const auto& [name, value] : part.counts)
        if (name == "peers") result.peers = value;
    }
  }
  result.rooms = sums["rooms"];
  result.rooms_succeeded = sums["rooms_succeeded"];
  result.rooms_failed = sums["rooms_failed"];
  result.tombstones = sums["tombstones"];
  result.leases = sums["leases"];
  result.leased_pages = sums["leased_pages"];
  result.quarantined = sums["quarantined"];
  result.slots_used = sums["slots_used"];
  result.transfers_active = sums["transfers_active"];
  result.registrations = sums["registrations"];
  result.frames_queued = sums["frames_queued"];
  result.bytes_written = sums["bytes_written"];
  result.writes_posted = sums["writes_posted"];
  result.frames_sent = sums["frames_sent"];
  result.frames_received = sums["frames_received"];
  result.frames_dropped = sums["frames_dropped"];
  for (const auto& name : report.silent) result.peer_texts.push_back(fmt::format("actor {} is silent", name));
  return result;
}

}  // namespace handoff
