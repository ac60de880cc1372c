#include "tools/sim/world.hpp"

#include "tools/sim/bootstrap_host.hpp"
#include "tools/sim/workload.hpp"

#include <algorithm>
#include <memory>

namespace handoff::sim {
namespace {

constexpr duration storm = 4s;         ///< faults begin before this
constexpr duration end_of_time = 60s;  ///< every room has ended by then
constexpr duration settling = 5s;      ///< sessions with the dead are found out, unclaimed rooms end
constexpr std::size_t bootstrap_slot = 0;

/// Something that happens to processes at some time.
struct occurrence {
  std::uint32_t number = 0;
  fault kind = fault::freeze;
  duration at{}, lasting{};
  std::size_t a = 0, b = 0;  ///< slots
};

class silent_sink final : public transport::event_sink {
  void on_events(std::span<transport::event>) override {}
};

class world {
 public:
  explicit world(const world_options& options);
  world_result run();

 private:
  std::size_t slots() const { return 1 + options_.prefill + options_.decode; }
  bool on(fault kind) const { return has(active_, kind); }
  rank_host* rank_at(std::size_t slot) const;
  void at_router(duration d, std::function<void()> what) {
    k_.wire.at(k_.now() + d, router_, std::move(what));
  }

  void choose_faults();
  void choose_links();
  rank_settings make_settings();
  void spawn(std::size_t slot);
  void plan_occurrences();
  void happen(const occurrence& o);
  void cut(std::size_t from, std::size_t to, bool fabric, bool is_cut);
  void crash(const occurrence& o);
  void restart(std::size_t slot);
  void finish();
  void compare_ends();
  void compare(const room_end& source, const room_end& sink);

  world_options options_;
  std::vector<std::unique_ptr<host>> hosts_;  ///< the dead too: bytes of theirs may be on their way
  silent_sink router_sink_;
  kernel k_;  // ends before the hosts: its wire still reads their memory
  control_net net_;
  std::size_t router_ = 0;
  fault_set active_;
  dice random_;
  std::vector<offer_record> offers_;
  std::vector<room_end> ends_;
  std::vector<host*> at_slot_;
  std::vector<occurrence> occurrences_;
  std::set<std::pair<std::size_t, std::size_t>> fabric_cuts_;
  std::size_t pending_ = 0;  ///< occurrences that are not over
  rank_settings settings_;
  std::unique_ptr<workload> work_;
};

world::world(const world_options& options)
    : options_(options), k_(options.seed, options.traced), net_(k_, 1s), random_(options.seed, 2) {
  k_.wire.add({}, router_sink_);
  offers_.push_back({});  // number 0: nobody's
  choose_faults();
  choose_links();
  settings_ = make_settings();
  k_.wire.watch_writes(
      [this](std::size_t process, std::span<std::byte> target, std::span<const std::byte> source) {
        for (auto& h : hosts_)
          if (h->index() == process)
            if (auto* rank = dynamic_cast<rank_host*>(h.get())) rank->check_landing(target, source);
      });
  work_ = std::make_unique<workload>(
      k_, options_, active_, [this](std::size_t slot) { return rank_at(slot); },
      [this](duration d, std::function<void()> what) { at_router(d, std::move(what)); });
  at_slot_.resize(slots());
  for (std::size_t slot = 0; slot < slots(); ++slot) spawn(slot);
  plan_occurrences();
}

rank_host* world::rank_at(std::size_t slot) const {
  auto* h = at_slot_[slot];
  return h != nullptr && h->alive() ? dynamic_cast<rank_host*>(h) : nullptr;
}

// -- making ------------------------------------------------------------------------------------------------

/// Of what may happen a world suffers some, so that rooms also get far; where little may happen, all of it.
void world::choose_faults() {
  const double share = options_.share > 0 ? options_.share : options_.faults.count() <= 3 ? 1 : 0.3;
  for (std::size_t i = 0; i < fault_count; ++i) {
    const bool chosen = random_.chance(share);
    active_[i] = options_.faults[i] && chosen;
  }
}

void world::choose_links() {
  transport::link_faults f;
  f.slow_delay = random_.between(1ms, 20ms);
  const auto rate = [&](fault kind, double from, double to) {
    const double r = from + (to - from) * static_cast<double>(random_.below(1000)) / 1000;
    return on(kind) ? r : 0;
  };
  f.slow = rate(fault::delay, 0.01, 0.1);
  f.frame_loss = rate(fault::frame_loss, 0.005, 0.05);
  f.frame_duplication = rate(fault::frame_duplication, 0.02, 0.3);
  f.frame_reordering = rate(fault::frame_reordering, 0.02, 0.3);
  f.reorder_delay = random_.chance(0.5) ? random_.between(100us, 5ms) : random_.between(5ms, 1s);
  f.raw_frames = on(fault::frame_duplication) || on(fault::frame_reordering);
  f.post_refused = rate(fault::post_refused, 0.02, 0.3);
  f.post_failed = rate(fault::post_failed, 0.002, 0.02);
  f.completion_failed = rate(fault::completion_failed, 0.002, 0.02);
  f.completion_lost = rate(fault::completion_lost, 0.002, 0.02);
  k_.wire.set_links(f);
  if (!on(fault::silent_ends)) return;
  k_.wire.set_ends_are_told(false);
  ++k_.counts.of(fault::silent_ends);
}

rank_settings world::make_settings() {
  rank_settings s;
  s.source.unclaimed_timeout = 2500ms;
  s.source.bootstrap_timeout = 3s;
  s.source.send_timeout = 2s;
  s.source.sending_timeout = 3s;
  s.source.result_timeout = 1s;
  s.source.announce_interval = s.sink.announce_interval = 400ms;
  s.source.renewed_max = 3s;
  s.source.transfer_timeout = 800ms;
  s.source.quarantine_timeout = 800ms;
  s.sink.bootstrap_timeout = 3s;
  s.sink.waiting_timeout = 2s;
  s.sink.transfer_timeout = 4s;
  s.sink.quarantine_timeout = 1s;
  s.sessions.connect_timeout = 1s;
  s.sessions.reconnect_delay = 100ms;
  s.transport.probe_timeout = 600ms;
  s.planted = options_.planted;
  if (on(fault::small_limits)) {
    ++k_.counts.of(fault::small_limits);
    s.transport.window = 1 + static_cast<std::uint32_t>(random_.below(3));
    s.transport.transfers_max = 2 + static_cast<std::uint32_t>(random_.below(8));
    s.slots = 2 + static_cast<std::uint32_t>(random_.below(4));
    s.rooms_max = 3 + static_cast<std::uint32_t>(random_.below(6));
    s.events_max = 1 + random_.below(6);
    s.long_pages = 6 + random_.below(12);
  }
  s.source.events = [this](std::string_view state, std::string_view event) {
    ++k_.counts.sender[{event, state}];
  };
  s.sink.events = [this](std::string_view state, std::string_view event) {
    ++k_.counts.receiver[{event, state}];
  };
  s.leases = [this](std::string_view state, std::string_view event) { ++k_.counts.lease[{event, state}]; };
  s.sessions.events = [this](std::string_view state, std::string_view event) {
    ++k_.counts.session[{event, state}];
  };
  return s;
}

void world::spawn(std::size_t slot) {
  const bool prefill = slot <= options_.prefill;
  engine_identity self;
  self.incarnation = {random_.next()};
  const auto skew = on(fault::clock_skew) ? random_.between(0ms, 100s) : duration(0);
  const auto drift = on(fault::clock_skew) ? static_cast<int>(random_.below(100'000)) - 50'000 : 0;
  if (on(fault::clock_skew)) ++k_.counts.of(fault::clock_skew);
  if (slot == bootstrap_slot) {
    self.engine = "bootstrap";
    self.role = engine_role::bootstrap;
    auto made = std::make_unique<bootstrap_host>(k_, net_, slot, self, skew, drift);
    net_.listen("bootstrap:1", *made);
    at_slot_[slot] = made.get();
    hosts_.push_back(std::move(made));
  } else {
    self.engine =
        prefill ? fmt::format("prefill-{}", slot - 1) : fmt::format("decode-{}", slot - 1 - options_.prefill);
    self.role = prefill ? engine_role::prefill : engine_role::decode;
    auto settings = settings_;
    if (k_.traced) {
      const auto log = [this, name = self.engine](const room_key& key, std::string_view from,
                                                  std::string_view to, time_point) {
        k_.trace(name, "{}: {} -> {}", to_string(key), from, to);
      };
      settings.source.log = settings.sink.log = log;
    }
    const auto address = fmt::format("{}:{}", self.engine, random_.chance(0.5) ? 1 : 2);
    auto made = std::make_unique<rank_host>(k_, net_, slot, self, address, "bootstrap:1", std::move(settings),
                                            offers_, ends_, *work_, skew, drift);
    at_slot_[slot] = made.get();
    hosts_.push_back(std::move(made));
  }
  k_.trace(self.engine, "starts as incarnation {:016x}", self.incarnation.value);
  for (auto [from, to] : fabric_cuts_) {
    auto *f = at_slot_[from], *t = at_slot_[to];
    if (f != nullptr && t != nullptr && (from == slot || to == slot))
      k_.wire.cut(f->index(), t->index(), true);
  }
}

// -- faults that happen to processes -----------------------------------------------------------------------

void world::plan_occurrences() {
  constexpr fault kinds[] = {fault::partition,
                             fault::one_way_partition,
                             fault::control_partition,
                             fault::control_break,
                             fault::freeze,
                             fault::stall,
                             fault::crash_prefill,
                             fault::crash_decode,
                             fault::crash_bootstrap,
                             fault::clock_jump};
  std::uint32_t number = 0;
  for (auto kind : kinds) {
    const auto count = 1 + random_.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      occurrence o;
      o.number = number++;
      o.kind = kind;
      o.at = random_.between(50ms, storm);
      o.lasting = random_.chance(0.5) ? random_.between(1ms, 500ms) : random_.between(500ms, 4s);
      const auto engine = [&] { return 1 + random_.below(slots() - 1); };
      o.a = engine();
      do o.b = kind == fault::control_partition && random_.chance(0.3) ? bootstrap_slot : engine();
      while (o.b == o.a);
      if (kind == fault::crash_prefill) o.a = 1 + random_.below(options_.prefill);
      if (kind == fault::crash_decode) o.a = 1 + options_.prefill + random_.below(options_.decode);
      if (kind == fault::crash_bootstrap) o.a = bootstrap_slot;
      if (on(kind) && (!options_.only_events || options_.only_events->contains(o.number)))
        occurrences_.push_back(o);
    }
  }
  for (std::uint32_t i = 0; i < occurrences_.size(); ++i) {
    ++pending_;
    at_router(occurrences_[i].at, [this, i] { happen(occurrences_[i]); });
  }
}

void world::cut(std::size_t from, std::size_t to, bool fabric, bool is_cut) {
  net_.cut(from, to, is_cut);
  if (!fabric) return;
  if (is_cut)
    fabric_cuts_.insert({from, to});
  else
    fabric_cuts_.erase({from, to});
  // Every life of both: what the last one sent may still be on its way.
  for (const auto& f : hosts_)
    for (const auto& t : hosts_)
      if (f->slot() == from && t->slot() == to) k_.wire.cut(f->index(), t->index(), is_cut);
}

void world::happen(const occurrence& o) {
  auto* victim = at_slot_[o.a];
  const auto over = [this](auto what) {
    return [this, what] {
      what();
      --pending_;
    };
  };
  ++k_.counts.of(o.kind);
  switch (o.kind) {
    case fault::partition:
    case fault::control_partition:
    case fault::one_way_partition: {
      const bool fabric = o.kind != fault::control_partition, both = o.kind != fault::one_way_partition;
      k_.trace("network", "{} between slots {} and {} for {} ms", to_string(o.kind), o.a, o.b,
               o.lasting / 1ms);
      const auto set = [this, o, fabric, both](bool is_cut) {
        cut(o.a, o.b, fabric, is_cut);
        if (both) cut(o.b, o.a, fabric, is_cut);
      };
      set(true);
      return at_router(o.lasting, over([set] { set(false); }));
    }
    case fault::control_break:
      (void)net_.break_one(random_);
      break;
    case fault::freeze:
      victim->freeze();
      return at_router(o.lasting, over([victim] { victim->thaw(); }));
    case fault::stall:
      if (auto* rank = rank_at(o.a)) rank->set_stall(o.lasting / 4);
      return at_router(o.lasting, over([this, o] {
                         if (auto* rank = rank_at(o.a)) rank->set_stall({});
                       }));
    case fault::crash_prefill:
    case fault::crash_decode:
    case fault::crash_bootstrap:
      if (!victim->alive()) break;
      crash(o);
      return at_router(o.lasting, over([this, o] { restart(o.a); }));
    case fault::clock_jump:
      if (victim->alive()) victim->jump(o.lasting);
      break;
    default:
      break;
  }
  --pending_;
}

void world::crash(const occurrence& o) {
  auto& victim = *at_slot_[o.a];
  victim.kill();
  net_.crashed(victim, !on(fault::silent_ends));
}

void world::restart(std::size_t slot) {
  spawn(slot);
  if (slot != bootstrap_slot) work_->restarted(slot);
}

// -- running -----------------------------------------------------------------------------------------------

world_result world::run() {
  ++k_.counts.worlds;
  work_->start();
  at_router(storm * 2, [this] { work_->stop(); });
  const auto limit = k_.now() + end_of_time;
  while (!(pending_ == 0 && work_->over()) && k_.wire.step(limit)) {
  }
  finish();
  world_result result;
  result.violations = std::move(k_.violations);
  result.lines = std::move(k_.lines);
  k_.mix(k_.counts.events);
  result.digest = k_.digest;
  for (const auto& o : occurrences_) result.events.insert(o.number);
  result.active = active_;
  const auto& w = k_.wire.counts();
  auto& c = k_.counts;
  c.of(fault::frame_loss) += w.frames_lost;
  c.of(fault::frame_duplication) += w.frames_duplicated;
  c.of(fault::frame_reordering) += w.frames_reordered;
  c.of(fault::delay) += w.slowed;
  c.of(fault::post_refused) += w.posts_refused;
  c.of(fault::post_failed) += w.posts_failed;
  c.of(fault::completion_failed) += w.completions_failed;
  c.of(fault::completion_lost) += w.completions_lost;
  c.other["frames and writes held by a cut"] += w.held;
  c.other["writes to an endpoint that was gone"] += w.writes_to_nobody;
  c.other["writes with a wrong key"] += w.writes_bad_key;
  c.other["frames late"] += w.frames_late;
  result.counts = std::move(k_.counts);
  return result;
}

/// The storm is over, every room has ended: what is left is too much.
void world::finish() {
  k_.trace("world", "the storm is over");
  k_.wire.set_links({});
  for (auto& h : hosts_)
    if (auto* rank = dynamic_cast<rank_host*>(h.get()); rank != nullptr && rank->alive())
      rank->check_liveness();
  const auto run_for = [this](duration d) {
    const auto until = k_.now() + d;
    while (k_.wire.step(until)) {
    }
  };
  run_for(settling);
  if (!on(fault::small_limits)) work_->start_aftermath();
  const auto limit = k_.now() + settling;
  while (!work_->over() && k_.wire.step(limit)) {
  }
  if (work_->failed_aftermath() != 0)
    k_.violate("world", "{} sides of rooms after the storm did not succeed", work_->failed_aftermath());
  run_for(5ms);
  std::set<std::uint64_t> living;
  for (auto& h : hosts_)
    if (h->alive()) living.insert(h->identity().incarnation.value);
  for (auto& h : hosts_)
    if (auto* rank = dynamic_cast<rank_host*>(h.get()); rank != nullptr && rank->alive()) {
      rank->commit_all();
      rank->jump(settings_.tombstones + 1s);
    }
  run_for(5ms);
  for (auto& h : hosts_)
    if (auto* rank = dynamic_cast<rank_host*>(h.get()); rank != nullptr && rank->alive())
      rank->check_baseline(living);
  compare_ends();
}

// -- both sides' ends --------------------------------------------------------------------------------------

void world::compare_ends() {
  std::map<std::uint16_t, const room_end*> sources, succeeded;  // by offer
  std::map<room_key, std::vector<const room_end*>> of_key[2];
  for (const auto& e : ends_) {
    of_key[e.side == room_side::source ? 0 : 1][e.key].push_back(&e);
    if (e.side == room_side::source) sources[e.offer] = &e;
    if (e.side == room_side::sink && e.poll == kv_poll::success) succeeded[e.offer] = &e;
  }
  for (const auto& [offer, source] : sources) {
    const auto sink = succeeded.find(offer);
    if (sink != succeeded.end()) {
      compare(*source, *sink->second);
    } else if (source->poll == kv_poll::success) {
      k_.violate("world", "{}: the source succeeded, no sink did", to_string(source->key));
    } else {
      // A process that restarted may meet the same attempt again: then there is no telling who met whom.
      const auto &mine = of_key[0][source->key], &theirs = of_key[1][source->key];
      const bool pair = mine.size() == 1 && theirs.size() == 1 && theirs.front()->poll == kv_poll::failed;
      if (pair)
        compare(*source, *theirs.front());
      else
        ++k_.counts.ends[theirs.empty() ? "source failed alone" : "source failed, of several lives"];
    }
  }
  for (const auto& [offer, sink] : succeeded)
    k_.counts.ends["sink success, source died"] += !sources.contains(offer);
  for (const auto& [key, theirs] : of_key[1]) k_.counts.ends["sink failed alone"] += !of_key[0].contains(key);
}

void world::compare(const room_end& source, const room_end& sink) {
  // Frames that are lost without their session, or late beyond the bounds: each side may end by itself.
  const auto any = [&](std::initializer_list<fault> kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [&](fault f) { return on(f); });
  };
  const bool lossy = any({fault::frame_loss, fault::frame_reordering});
  const bool late = any({fault::freeze, fault::clock_jump, fault::partition, fault::one_way_partition});
  const bool fair =
      !lossy && !late &&
      !any({fault::frame_duplication, fault::post_failed, fault::completion_failed, fault::completion_lost,
            fault::silent_ends, fault::control_partition, fault::control_break, fault::crash_prefill,
            fault::crash_decode, fault::small_limits});
  const auto say = [](const room_end& e) {
    return e.poll == kv_poll::success ? std::string("success") : e.reason;
  };
  const auto differ = [&](const char* how) {
    k_.violate("world", "{}: {}: source: {}; sink: {}", to_string(source.key), how, say(source), say(sink));
  };
  if (source.poll != sink.poll) {
    ++k_.counts.ends[fmt::format("sink success, source {}", to_string(source.code))];
    const bool gone = source.code == errc::peer_gone || source.code == errc::transport_fenced;
    if (source.poll == kv_poll::success || fair || (!gone && !lossy && !late))
      differ("the sides ended differently");
    return;
  }
  if (source.poll == kv_poll::success) {
    ++k_.counts.ends["both success"];
    return;
  }
  const bool same = source.code == sink.code && source.reason == sink.reason;
  ++k_.counts.ends[same ? "both failed, one reason" : "both failed, each its own"];
  const auto seen_by = [](const room_end& e, const char* who) {
    return e.reason.find(std::string("(seen by ") + who) != std::string::npos;
  };
  if (same || !fair) return;
  // Each its own is what crosses on the way; else one would have heard of the other's.
  const auto apart = source.ended < sink.ended ? sink.ended - source.ended : source.ended - sink.ended;
  if (!(seen_by(source, "prefill") && seen_by(sink, "decode"))) differ("the reasons differ");
  if (apart > 100ms) differ("one side did not hear of the other's end");
}

}  // namespace

world_result run_world(const world_options& options) {
  world w(options);
  return w.run();
}

}  // namespace handoff::sim
