// Engines in one process, as an embedder would make them: pools in plain memory, the runtime's API, nothing
// else.
#pragma once

#include "actors/runtime.hpp"
#include "config/engine_config.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>

namespace handoff::test {

inline constexpr std::uint32_t page_tokens = 4, pages = 64, layers = 2;
inline constexpr std::uint64_t token_bytes = 32;

inline engine_config config_for(const std::string& name, const std::string& bootstrap,
                                const std::string& provider) {
  engine_config c;
  c.engine.name = name;
  c.model.name = "smollm2-135m";
  c.memory.page_tokens = page_tokens;
  c.memory.slots = 16;
  if (!bootstrap.empty()) c.bootstrap.address = bootstrap;
  c.bootstrap.bind = "127.0.0.1:0";
  c.transport.provider = provider;
  c.log.level = "debug";
  return c;
}

/// One engine of one rank with a pool of `pages` pages and `layers` layers of K and V.
class engine {
  // Before the runtime, whose threads log until it is closed.
  std::mutex mutex_;
  std::condition_variable logged_;
  std::string log_;

 public:
  using configure = std::function<void(engine_config&)>;

  engine(const std::string& name, engine_role role, const std::string& bootstrap, const std::string& provider,
         const configure& change = {}) {
    runtime_options o;
    o.config = config_for(name, bootstrap, provider);
    if (change) change(o.config);
    o.role = role;
    o.log = [this](log_level, std::string_view event, std::string_view text) {
      std::lock_guard guard(mutex_);
      log_ += std::string(event) + ": " + std::string(text) + "\n";
      logged_.notify_all();
    };
    auto made = runtime::create(std::move(o));
    REQUIRE_MESSAGE(made, to_string(made ? error{} : made.error()));
    rt = std::move(*made);
    if (role == engine_role::bootstrap) return;
    memory.assign(std::size_t{layers} * 2 * pages * page_tokens * token_bytes, std::byte{0});
    pool_description pool{"kv", page_tokens, pages, {}};
    for (std::uint32_t i = 0; i < layers * 2; ++i) {
      pool_buffer b;
      b.base = memory.data() + std::size_t{i} * pages * page_tokens * token_bytes;
      b.layout.layer = i / 2;
      b.layout.kind = i % 2 ? buffer_kind::value : buffer_kind::key;
      b.layout.head_count = 1;
      b.layout.page_tokens = page_tokens;
      b.layout.pages = pages;
      b.layout.item_bytes = page_tokens * token_bytes;
      b.layout.token_stride_bytes = token_bytes;
      b.layout.head_stride_bytes = token_bytes;
      pool.buffers.push_back(b);
    }
    auto component = rt->register_pool(pool);
    REQUIRE(component);
    auto started = rt->start();
    REQUIRE_MESSAGE(!started, to_string(started));
  }

  std::byte* token(std::uint32_t buffer, page_id page, std::uint32_t offset) {
    return memory.data() + ((std::size_t{buffer} * pages + page.value) * page_tokens + offset) * token_bytes;
  }

  /// Takes events until one matches; everything taken stays in `seen`.
  std::optional<room_event> wait_for(const std::function<bool(const room_event&)>& matches,
                                     std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
      std::array<room_event, 8> events;
      auto count = rt->take_events(events);
      std::optional<room_event> found;
      for (std::size_t i = 0; i < count; ++i) {
        seen.push_back(events[i]);
        if (!found && matches(events[i])) found = events[i];
      }
      if (found) return found;
      if (count > 0) continue;
      auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) return {};
      if (!rt->arm()) continue;
      pollfd p{rt->wait_fd(), POLLIN, 0};
      ::poll(&p, 1, static_cast<int>(left.count()));
    }
  }

  std::optional<room_event> wait_poll(room_id room, kv_poll poll) {
    return wait_for([&](const room_event& e) {
      return e.key.room == room && e.what == room_event::kind::verdict &&
             (e.poll == poll || is_terminal(e.poll));
    });
  }
  /// The same, where it may have been taken while another room was waited for.
  std::optional<room_event> seen_poll(room_id room, kv_poll poll) {
    for (const auto& e : seen)
      if (e.key.room == room && e.what == room_event::kind::verdict &&
          (e.poll == poll || is_terminal(e.poll)))
        return e;
    return wait_poll(room, poll);
  }
  std::optional<room_event> wait_released(room_id room) {
    for (const auto& e : seen)
      if (e.key.room == room && e.what == room_event::kind::released) return e;
    return wait_for(
        [&](const room_event& e) { return e.key.room == room && e.what == room_event::kind::released; });
  }

  std::string log() {
    std::lock_guard guard(mutex_);
    return log_;
  }

  /// Until a line of the log holds it.
  bool wait_log(const std::string& fragment, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    std::unique_lock guard(mutex_);
    return logged_.wait_for(guard, limit, [&] { return log_.find(fragment) != std::string::npos; });
  }

  std::vector<std::byte> memory;
  std::vector<room_event> seen;
  std::unique_ptr<runtime> rt;
};

}  // namespace handoff::test
