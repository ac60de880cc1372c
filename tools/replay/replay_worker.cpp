#include "tools/replay/replay_worker.hpp"

#include "tools/commands/stop_signals.hpp"
#include "tools/replay/line_channel.hpp"
#include "tools/replay/process_resources.hpp"
#include "tools/replay/room_driver.hpp"
#include "tools/replay/worker_config.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include <fmt/format.h>
#include <poll.h>

namespace handoff::replay {
namespace {

/// Events taken at once.
constexpr std::size_t events_at_once = 64;
/// How long the runtime's counts may take to return to their baseline after the last room.
constexpr std::uint64_t settle_ns = 3'000'000'000;
constexpr int settle_step_ms = 10;
/// The loop looks at its rooms' deadlines that often when nothing happens.
constexpr int idle_ms = 500;
/// While it sweeps its whole pool and takes no orders, the worker says that often that it lives.
constexpr std::uint64_t breath_ns = 500'000'000;

class worker {
 public:
  worker(int input, int output) : input_(input), output_(output), reader_(input) {}

  int run() {
    auto problem = set_up();
    if (!problem && setup_) problem = serve();
    if (problem) {
      say(kind::failed, failure_note{static_cast<std::uint16_t>(problem.code), problem.detail});
      return exit_status(problem.code);
    }
    return 0;
  }

 private:
  template <class T>
  void say(std::string_view what, const T& body) {
    // A router that is gone is noticed by the end of the input.
    (void)write_line(output_, make_line(what, body));
  }

  expected<bool> wait_input(int timeout_ms);
  error set_up();
  error make_engine();
  error serve();
  error obey(const std::string& line);
  void begin_drain();
  bool drained() const;
  void breathe();
  bool take_events();
  resource_counts count() const;
  static resource_counts count(const runtime_status& status);
  worker_summary summarize();
  void check_runtime(worker_summary& summary);
  void check_memory(worker_summary& summary);
  void remember_shm_names();

  int input_, output_;
  line_reader reader_;
  tools::stop_signals signals_;
  std::uint64_t breath_ns_ = 0;          ///< of the last one
  std::uint64_t drain_deadline_ns_ = 0;  ///< 0: not asked to end
  std::uint32_t drain_ms_ = 0;
  std::optional<worker_setup> setup_;
  std::optional<page_oracle> oracle_;
  std::optional<page_allocator> pages_;
  std::unique_ptr<runtime> engine_;
  std::unique_ptr<room_driver> driver_;
  std::optional<resource_counts> baseline_;
  std::vector<std::string> shm_names_;
  bool ended_ = false;
  std::atomic<bool> finished_ = false;  ///< read by the runtime's threads: peers end now, that is no news
};

error worker::set_up() {
  while (!setup_) {
    if (const auto line = reader_.next()) {
      const auto parsed = parse_line(*line);
      if (!parsed) return parsed.error();
      auto setup = body_of<worker_setup>(*parsed);
      if (!setup) return setup.error();
      setup_ = std::move(*setup);
      break;
    }
    const auto state = reader_.fill();
    if (!state) return state.error();
    if (*state == line_reader::state::ended) return {};
  }
  if (auto e = make_engine()) return e;
  say(kind::ready, ready_note{engine_->endpoint(), engine_->control_address()});
  return {};
}

error worker::make_engine() {
  auto config = make_worker_config(*setup_);
  if (!config) return config.error();
  drain_ms_ = config->timeouts.drain_ms;
  runtime_options options;
  options.config = std::move(*config);
  options.role = setup_->role;
  options.sabotage = setup_->sabotage;
  options.sabotage_seed = setup_->seed;
  options.log = [this, name = options.config.engine.name](log_level level, std::string_view event,
                                                          std::string_view text) {
    // From the thread that stops: the router cannot hear of it later. A short line is written in one piece.
    if (event == "breakpoint") say(kind::breakpoint, breakpoint_note{std::string(text)});
    if (level >= (setup_->quiet ? log_level::error : log_level::warn) && !finished_)
      fmt::print(stderr, "{}: {}: {}\n", name, event, text);
  };
  auto engine = runtime::create(std::move(options));
  if (!engine) return engine.error();
  engine_ = std::move(*engine);
  if (setup_->role == engine_role::bootstrap) return engine_->start();

  auto layout = make_worker_layout(*setup_);
  if (!layout) return layout.error();
  auto memory = pool_memory::create(std::move(*layout));
  if (!memory) return memory.error();
  const auto side = setup_->role == engine_role::prefill ? pool_side::source : pool_side::sink;
  oracle_.emplace(std::move(*memory), setup_->seed, side);
  pages_.emplace(setup_->pages, mix(setup_->seed + static_cast<std::uint64_t>(setup_->role)));
  if (setup_->sabotage == sabotage_kind::stale_page && side == pool_side::sink) oracle_->age_all();
  for (std::uint64_t item = 0; item < oracle_->items(setup_->pages); ++item) {
    oracle_->poison(item);
    breathe();
  }

  const auto component = engine_->register_pool(oracle_->memory().describe());
  if (!component) return component.error();
  driver_context context{*engine_,   *oracle_, *pages_,
                         *component, *setup_,  [this](const auto& outcome) { say(kind::room, outcome); }};
  driver_ = side == pool_side::source ? make_source_driver(std::move(context))
                                      : make_sink_driver(std::move(context));
  return engine_->start();
}

error worker::serve() {
  while (!ended_) {
    while (const auto line = reader_.next())
      if (auto e = obey(*line)) return e;
    bool busy = take_events();
    busy |= driver_ && driver_->work();
    if (drained()) break;
    std::array<pollfd, 3> waits{
        {{input_, POLLIN, 0}, {engine_->wait_fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    // Events that come between the look above and the wait make `arm` say no.
    const int timeout_ms = busy || !engine_->arm() ? 0 : idle_ms;
    poll(waits.data(), waits.size(), timeout_ms);
    if (waits[2].revents != 0 && signals_.take()) begin_drain();
    if (waits[0].revents == 0) continue;
    const auto state = reader_.fill();
    if (!state) return state.error();
    if (*state == line_reader::state::ended) ended_ = true;
  }
  engine_->close();
  return {};
}

bool worker::take_events() {
  std::array<room_event, events_at_once> events;
  const auto count = engine_->take_events(events);
  for (std::size_t i = 0; i < count; ++i) driver_->take(events[i]);
  return count > 0;
}

error worker::obey(const std::string& line) {
  const auto parsed = parse_line(line);
  if (!parsed) return parsed.error();
  if (parsed->kind == kind::start && driver_) {
    const auto order = body_of<room_order>(*parsed);
    if (!order) return order.error();
    driver_->start(*order);
  } else if (parsed->kind == kind::abort) {
    const auto order = body_of<room_order>(*parsed);
    if (!order) return order.error();
    (void)engine_->abort({order->room}, "the router gave it up");
  } else if (parsed->kind == kind::mark) {
    baseline_ = count();
    remember_shm_names();
    (void)write_line(output_, make_line(kind::marked));
  } else if (parsed->kind == kind::ping) {
    (void)write_line(output_, make_line(kind::pong));
  } else if (parsed->kind == kind::finish) {
    const auto summary = summarize();
    finished_ = true;
    say(kind::summary, summary);
  } else {
    return {errc::wire_unsupported,
            fmt::format("'{}' means nothing to a {} worker", parsed->kind, to_string(setup_->role)),
            {}};
  }
  return {};
}

/// A signal from outside: the open rooms may end, as under any engine that is told to stop; then this worker
/// does.
void worker::begin_drain() {
  (void)engine_->drain(
      std::chrono::milliseconds(0));  // the rooms need this thread, so it does not wait for them
  drain_deadline_ns_ = now_ns() + std::uint64_t{drain_ms_} * 1'000'000;
}

bool worker::drained() const {
  if (drain_deadline_ns_ == 0) return false;
  return !driver_ || driver_->idle() || now_ns() >= drain_deadline_ns_;
}

void worker::breathe() {
  if (now_ns() - breath_ns_ < breath_ns) return;
  breath_ns_ = now_ns();
  (void)write_line(output_, make_line(kind::pong));
}

resource_counts worker::count() const {
  const auto status = engine_->status();
  return count(status);
}

resource_counts worker::count(const runtime_status& status) {
  return {open_descriptors(), status.registrations, status.peers, status.actors, file_maps()};
}

void worker::remember_shm_names() {
  for (auto& name : own_shm_names())
    if (std::find(shm_names_.begin(), shm_names_.end(), name) == shm_names_.end())
      shm_names_.push_back(std::move(name));
}

worker_summary worker::summarize() {
  worker_summary summary;
  check_runtime(summary);
  if (oracle_) check_memory(summary);
  remember_shm_names();
  summary.shm_names = shm_names_;
  return summary;
}

/// Counts of a runtime that has no room left.
void worker::check_runtime(worker_summary& summary) {
  struct counter {
    const char* name;
    std::uint64_t value, wanted;
  };
  const auto counters = [this](const runtime_status& s) {
    return std::array<counter, 7>{
        {{"rooms", s.rooms, 0},
         {"leases", s.leases, 0},
         {"leased_pages", s.leased_pages, 0},
         {"quarantined", s.quarantined, 0},
         {"slots_used", s.slots_used, 0},
         {"transfers_active", s.transfers_active, 0},
         {"registrations", s.registrations, baseline_ ? baseline_->registrations : s.registrations}}};
  };
  const auto settled = [&](const runtime_status& s) {
    const auto all = counters(s);
    if (baseline_ && count(s) != *baseline_) return false;
    return std::all_of(all.begin(), all.end(), [](const auto& c) { return c.value == c.wanted; });
  };
  auto status = engine_->status();
  for (const auto start = now_ns(); !settled(status) && now_ns() - start < settle_ns;
       status = engine_->status())
    poll(nullptr, 0, settle_step_ms);

  const auto role = to_string(setup_->role);
  for (const auto& c : counters(status))
    if (c.value != c.wanted)
      summary.leaks.push_back(
          fmt::format("{}: {} is {} at the end, {} expected", role, c.name, c.value, c.wanted));
  summary.counts = count(status);
  const auto compare = [&](const char* what, std::uint64_t resource_counts::*which) {
    if (baseline_ && summary.counts.*which != *baseline_.*which)
      summary.leaks.push_back(fmt::format("{}: {} {} at the end, {} after the first room", role,
                                          summary.counts.*which, what, *baseline_.*which));
  };
  compare("open descriptors", &resource_counts::descriptors);
  compare("peers", &resource_counts::peers);
  compare("actors", &resource_counts::actors);
  compare("mapped files", &resource_counts::maps);
  summary.injected = status.injected;
  summary.connections = status.peer_texts;
  summary.bytes_written = status.bytes_written;
  summary.writes = status.writes_posted;
}

/// Every page is free and poisoned again, every canary intact.
void worker::check_memory(worker_summary& summary) {
  const auto role = to_string(setup_->role);
  std::unordered_map<std::uint64_t, std::uint64_t> held;
  for (std::uint64_t i = 0; i < pages_->total(); ++i)
    if (const auto owner = pages_->owner({static_cast<std::uint32_t>(i)})) ++held[owner->value];
  for (const auto& [room, count] : held)
    summary.leaks.push_back(
        fmt::format("{}: room {} still holds {} of {} pages", role, room, count, pages_->total()));

  if (const auto broken = oracle_->memory().broken_canary())
    summary.findings.push_back(fmt::format("{}: {}", role, *broken));
  const auto buffers = oracle_->memory().buffers().size();
  for (std::uint64_t item = 0; item < oracle_->items(setup_->pages); ++item) {
    breathe();
    if (pages_->owner({static_cast<std::uint32_t>(item / buffers)})) continue;
    const auto found = oracle_->verify_untouched(item);
    if (!found) continue;
    summary.findings.push_back(fmt::format("{}: {}", role, oracle_->explain(item, *found, *pages_)));
    return;
  }
}

}  // namespace

int run_worker(int input, int output) {
  return worker(input, output).run();
}

}  // namespace handoff::replay
