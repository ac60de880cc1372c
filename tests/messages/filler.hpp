// Fills messages through `inspect`: with seeded random content, or with values that count up.
#pragma once

#include "messages/control_messages.hpp"
#include "messages/room_messages.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace handoff::test {

/// What a filled struct must keep so that check_limits accepts it.
template <class T>
void make_valid(T&) {}
inline void make_valid(rank_topology& x) {
  for (auto* axis : {&x.dp, &x.pp, &x.cp, &x.tp}) *axis = std::max<std::uint16_t>(*axis, 1);
}
inline void make_valid(announce_message& x) {
  x.sink_ranks = std::max<std::uint16_t>(x.sink_ranks, 1);
}
inline void make_valid(publish_message& x) {
  x.parts = static_cast<std::uint16_t>(1 + x.parts % limits::publish_parts);
  x.part = static_cast<std::uint16_t>(x.part % x.parts);
}
inline void make_valid(hello_message& x) {
  if (x.protocol_min > x.protocol_max) std::swap(x.protocol_min, x.protocol_max);
  x.self.engine.resize(std::min(x.self.engine.size(), limits::engine_name_bytes));
}
inline void make_valid(drain_request_message& x) {
  x.deadline_ms %= limits::drain_deadline_ms;
}

/// Source says what a number, an enumerator, a length and a text are.
template <class Source>
class filler {
 public:
  using own_inspector = void;
  explicit filler(Source source) : source_(std::move(source)) {}

  template <class T>
  T make() {
    T x{};
    fill(x);
    return x;
  }

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (fill(refs.value), ...);
    return true;
  }

 private:
  template <class T>
  void fill(T& x) {
    if constexpr (std::is_same_v<T, bool>) {
      x = source_.number() & 1;
    } else if constexpr (std::is_same_v<T, errc>) {
      do {
        x = static_cast<errc>(source_.enumerator(static_cast<unsigned>(last_enumerator(x))));
      } while (errc_from_wire(static_cast<std::uint16_t>(x)) != x);
    } else if constexpr (std::is_enum_v<T>) {
      x = static_cast<T>(source_.enumerator(static_cast<unsigned>(last_enumerator(x))));
    } else if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(source_.number());
    } else if constexpr (std::is_same_v<T, std::string>) {
      x = source_.text();
    } else {
      fill_struct_or_list(x);
    }
  }
  template <class T>
  void fill_struct_or_list(std::vector<T>& x) {
    x.resize(source_.length());
    for (auto& element : x) fill(element);
  }
  template <class T>
  void fill_struct_or_list(T& x) {
    inspect(*this, x);
    make_valid(x);
  }

  Source source_;
};

struct random_source {
  std::mt19937_64 engine;

  std::uint64_t number() { return engine(); }
  std::uint64_t enumerator(unsigned last) { return engine() % (last + 1); }
  std::size_t length() { return engine() % 4; }
  std::string text() {
    std::string s(engine() % 24, '\0');
    for (auto& c : s) c = static_cast<char>(engine());
    return s;
  }
};

/// The same values at every run and on every platform, easy to find in a hex dump.
struct counting_source {
  std::uint8_t next = 0;

  std::uint64_t number() { return ++next; }
  std::uint64_t enumerator(unsigned) { return 1; }  // a new enumerator changes nothing
  std::size_t length() { return 2; }
  std::string text() { return "text-" + std::to_string(++next); }
};

template <class T>
T random_message(std::uint64_t seed) {
  return filler(random_source{std::mt19937_64(seed)}).template make<T>();
}
template <class T>
T counted_message() {
  return filler(counting_source{}).template make<T>();
}

}  // namespace handoff::test
