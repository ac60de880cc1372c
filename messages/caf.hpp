// All that differs between CAF versions stands here; the project builds on 0.17.6, which Debian ships. Actors
// use these names instead of CAF's own: typed interfaces, sending, delayed sending, asking, and the
// inspection of our structs.
#pragma once

#include "messages/inspect.hpp"

#include <chrono>
#include <utility>

#include <caf/all.hpp>

namespace handoff {

/// CAF's inspectors see our structs through the same `fields` as ours.
template <class F, class... Ts>
requires(!own_inspector<F>) auto fields(F& f, const char* type, field_ref<Ts>... refs) {
  return f(caf::meta::type_name(type), refs.value...);
}

namespace detail {
template <class>
struct signature;
template <class R, class... Ts>
struct signature<R(Ts...)> {
  using type = typename caf::replies_to<Ts...>::template with<R>;
};
template <class... Ts>
struct signature<void(Ts...)> {
  using type = caf::reacts_to<Ts...>;
};
}  // namespace detail

/// typed_interface<void(submit_call), status_part(status_call)>: what an actor takes and answers.
template <class... Signatures>
using typed_interface = caf::typed_actor<typename detail::signature<Signatures>::type...>;

/// One-way, from actors and from other threads alike; who answers whom stands in the messages themselves.
template <class To, class... Ts>
void tell(const To& to, Ts&&... message) {
  caf::anon_send(to, std::forward<Ts>(message)...);
}

/// After `delay` of the system's clock (the test scheduler's is virtual).
template <class To, class... Ts>
void tell_after(std::chrono::nanoseconds delay, const To& to, Ts&&... message) {
  caf::delayed_anon_send(to, delay, std::forward<Ts>(message)...);
}

/// The answer is taken with `.then(handler, error handler)`, within `limit`.
template <class Self, class To, class... Ts>
auto ask(Self* self, const To& to, std::chrono::nanoseconds limit, Ts&&... message) {
  return self->request(to, limit, std::forward<Ts>(message)...);
}

/// The injected clock: the system's, or the test scheduler's virtual one.
template <class Self>
std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds> now_of(Self* self) {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(self->clock().now());
}

}  // namespace handoff
