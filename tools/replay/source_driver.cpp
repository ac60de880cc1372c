// The prefill side: fill the pages, offer, send in page-aligned chunks, wait for success and release.
#include "tools/replay/room_driver.hpp"

#include <algorithm>

namespace handoff::replay {
namespace {

/// The offer's lease: no sink keeps a room waiting for longer than all its phases.
std::chrono::milliseconds lease_of(const worker_setup& setup) {
  if (setup.bounds.offer_ms > 0) return std::chrono::milliseconds(setup.bounds.offer_ms);
  return std::chrono::seconds(setup.timeout_s) * 4;
}

class source_driver final : public room_driver {
 public:
  using room_driver::room_driver;

 private:
  void begin(room& r) override {
    sweep(
        r, [&r, this](std::uint64_t item) { context_.oracle.write(r.place, item); },
        [&r, this] { offer(r); });
  }

  void offer(room& r) {
    const auto label = "replay-" + std::to_string(r.order);
    if (auto e =
            context_.engine.offer(r.place.room, spans(r), r.place.tokens, lease_of(context_.setup), label)) {
      note_failure(r, e);
      return finish(r);
    }
    r.outcome.started_ns = now_ns();
    if (auto e = send_all(r)) {
      note_failure(r, e);
      context_.engine.abort(r.place.room, e.detail);
    }
  }

  /// One to three chunks, cut at page borders.
  error send_all(const room& r) {
    const auto page_tokens = context_.oracle.memory().page_tokens();
    const auto pages = r.place.pages.size();
    const auto bits = mix(context_.setup.seed + r.place.room.value);
    const auto chunks = std::min<std::uint64_t>(1 + bits % 3, pages);
    const auto row = row_of(context_.setup.seed, r.place.room, r.place.tokens);
    for (std::uint64_t i = 0; i < chunks; ++i) {
      chunk c;
      c.first_token = pages * i / chunks * page_tokens;
      c.last_token = std::min(r.place.tokens, pages * (i + 1) / chunks * page_tokens);
      c.last = i + 1 == chunks;
      if (auto e = context_.engine.send(r.place.room, c, c.last ? &row : nullptr)) return e;
    }
    return {};
  }

  void changed(room& r, const room_event&) override {
    if (r.released && !r.finishing) finish(r);
  }
};

}  // namespace

std::unique_ptr<room_driver> make_source_driver(driver_context context) {
  return std::make_unique<source_driver>(std::move(context));
}

}  // namespace handoff::replay
