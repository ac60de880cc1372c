// The composition root: makes the actors and the transport of one runtime, and ends them in order.
#include "actors/bootstrap/bootstrap_actor.hpp"
#include "actors/bootstrap/bootstrap_client_actor.hpp"
#include "actors/control/control_broker.hpp"
#include "actors/control/socket.hpp"
#include "actors/decode/decode_actor.hpp"
#include "actors/drain/drain_actor.hpp"
#include "actors/monitor/monitor_actor.hpp"
#include "actors/prefill/prefill_actor.hpp"
#include "actors/runtime/breakpoint.hpp"
#include "actors/runtime/composition.hpp"
#include "actors/runtime/runtime_impl.hpp"
#include "actors/transfer_engine/transfer_engine_actor.hpp"
#include "transport/fabric/fabric_transport.hpp"
#include "transport/sabotage.hpp"

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

}  // namespace

runtime::impl::impl(runtime_options o)
    : options(std::move(o)),
      log(options.log, level_of(options.config.log.level)),
      incarnation(new_incarnation()),
      events(std::make_shared<event_channel>(options.config.limits.events)),
      config(options.config.actors.workers) {}

expected<std::unique_ptr<runtime>> runtime::create(runtime_options options) {
  if (auto valid = check_config(options.config, "configuration"); !valid)
    return tl::make_unexpected(valid.error());
  if (const auto& where = options.config.testing.breakpoint; !where.empty())
    if (auto valid = parse_breakpoint(where); !valid) return tl::make_unexpected(valid.error());
  auto state = std::make_unique<impl>(std::move(options));
  if (const auto& path = state->options.config.security.token_file; !path.empty()) {
    auto read = read_token_file(path);
    if (!read) return tl::make_unexpected(read.error());
    if (!read->warning.empty()) state->log.warn("token-file", "{}", read->warning);
    state->token = read->token;
  }
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
    if (is_wildcard(actual->host)) actual->host = c.control.advertise;  // check_config asks for one
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
      *system,
      {identity(),
       token,
       {.connections_max = c.limits.control_connections,
        .unauthenticated_max = c.limits.control_unauthenticated,
        .per_source = {.per_second = c.limits.control_rate, .burst = c.limits.control_connections}},
       from_ms(c.timeouts.connect_ms),
       log},
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
  s.sessions = session_context(c, log);
  s.failures = make_injector(c, options.rank, "peers");
  s.log = log;
  engine = spawn_transfer_engine(*system, std::move(s), transport, broker, directory);
  sink.serve(engine);

  room_desk_settings desk{
      layout, events, source_rows, slots, c.limits.rooms, c.limits.tombstones, from_ms(t.tombstone_ms), log};
  prefill = spawn_prefill(
      *system,
      {make_sender_context(c, layout, options.rank, log), desk, make_injector(c, options.rank, "source")},
      engine);
  desk.rows = sink_rows;
  decode = spawn_decode(
      *system,
      {make_receiver_context(c, layout, options.rank, log), desk, make_injector(c, options.rank, "sink")},
      engine);

  auto as_actor = [](const auto& handle) { return caf::actor_cast<caf::actor>(handle); };
  tell(engine, rank_actors{as_actor(prefill), as_actor(decode)});
  drainer = spawn_drain(*system, {fmt::format("engine {} {}", c.engine.name, to_string(options.rank)),
                                  prefill, decode, engine, directory, broker, from_ms(t.status_ms), log});
  control_routes routes;
  routes.transfer_engine = as_actor(engine);
  routes.drain = as_actor(drainer);
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
    if (s.directory)
      self->request(s.directory, control_end_timeout, leave_call{})
          .receive([](bool) {}, [](const caf::error&) {});
    stop(s.drainer);
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
  s.drainer = drain_interface();
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

}  // namespace handoff
