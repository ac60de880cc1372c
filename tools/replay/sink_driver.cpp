// The decode side: check that the pages are untouched, announce, publish, and on success commit and compare
// the row and every byte.
#include "tools/replay/room_driver.hpp"

#include <fmt/format.h>

namespace handoff::replay {
namespace {

/// Which room leak_lease keeps: not the first, so that others come after the leak.
constexpr std::uint64_t leaked_order = 3;

class sink_driver final : public room_driver {
 public:
  using room_driver::room_driver;

 private:
  void begin(room& r) override {
    sweep(
        r, [&r, this](std::uint64_t item) { check_untouched(r, item); }, [&r, this] { announce(r); });
  }

  /// Somebody wrote into pages that no room owned.
  void check_untouched(room& r, std::uint64_t item) {
    const auto found = context_.oracle.verify_untouched(r.place, item);
    if (!found) return;
    r.outcome.wrong_bytes += found->wrong_bytes;
    note_finding(
        r, "written while it was free: " + context_.oracle.explain(r.place, item, *found, context_.pages));
  }

  void announce(room& r) {
    r.outcome.started_ns = now_ns();
    if (auto e = context_.engine.announce(r.place.room, r.source.empty() ? context_.setup.source : r.source,
                                          "replay-" + std::to_string(r.order))) {
      note_failure(r, e);
      finish(r);
    }
  }

  void changed(room& r, const room_event& event) override {
    if (event.what == room_event::kind::verdict && event.poll == kv_poll::waiting_for_input) publish(r);
    if (event.what == room_event::kind::verdict && event.poll == kv_poll::success) return check(r);
    // A room that succeeded is finished once its bytes were compared.
    if (r.released && r.verdict == kv_poll::failed && !r.finishing) finish(r);
    if (r.released && checked(r) && !r.finishing) finish(r);
  }

  void publish(room& r) {
    if (auto e = context_.engine.publish(r.place.room, spans(r), r.place.tokens)) {
      if (e.code == errc::room_unknown) return;  // it has ended meanwhile: its verdict follows and says why
      note_failure(r, e);
      context_.engine.abort(r.place.room, e.detail);
    }
  }

  bool leaks(const room& r) const {
    return context_.setup.sabotage == sabotage_kind::leak_lease && r.order == leaked_order;
  }

  bool checked(const room& r) const { return r.verdict == kv_poll::success && !r.visit; }

  void check(room& r) {
    if (!leaks(r)) check_row(r);
    sweep(
        r, [&r, this](std::uint64_t item) { compare(r, item); },
        [&r, this] {
          r.visit = nullptr;
          if (leaks(r)) return leave(r);
          if (r.released) finish(r);
        });
  }

  void check_row(room& r) {
    metadata_row row;
    if (auto e = context_.engine.commit(r.place.room, row)) return note_failure(r, e);
    const auto wanted = row_of(context_.setup.seed, r.place.room, r.place.tokens);
    if (row == wanted) return;
    r.outcome.wrong_bytes += sizeof row.first_token;
    note_finding(r, fmt::format("room {} metadata row: first token {} cached {}; expected {} and {}",
                                r.place.room.value, row.first_token, row.cached_tokens, wanted.first_token,
                                wanted.cached_tokens));
  }

  void compare(room& r, std::uint64_t item) {
    const auto result = context_.oracle.verify(r.place, item);
    r.outcome.bytes_verified += result.verified;
    r.outcome.wrong_bytes += result.wrong;
    if (result.first && r.outcome.findings.empty())
      note_finding(r, (result.outside ? "behind its last token: " : "") +
                          context_.oracle.explain(r.place, item, *result.first, context_.pages));
  }
};

}  // namespace

std::unique_ptr<room_driver> make_sink_driver(driver_context context) {
  return std::make_unique<sink_driver>(std::move(context));
}

}  // namespace handoff::replay
