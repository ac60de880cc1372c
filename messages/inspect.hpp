// How a plain struct shows its fields. Each struct has one free template
//
//   template <class F> auto inspect(F& f, publish& x) {
//     return fields(f, "publish", field("key", x.key), field("slot", x.slot));
//   }
//
// which serves the wire codec, JSON output and CAF alike. Our own inspectors carry `own_inspector` and get
// `object(type, fields...)`; CAF's inspectors are adapted in messages/caf.hpp, found by argument-dependent
// lookup.
#pragma once

namespace handoff {

template <class T>
struct field_ref {
  const char* name;
  T& value;
};

template <class T>
field_ref<T> field(const char* name, T& value) {
  return {name, value};
}

template <class F>
concept own_inspector = requires {
  typename F::own_inspector;
};

template <own_inspector F, class... Ts>
auto fields(F& f, const char* type, field_ref<Ts>... refs) {
  return f.object(type, refs...);
}

/// Types whose encoding never grows (ids, coordinates, runs): the codec writes them without a length prefix.
/// Specialise to true next to the struct.
template <class T>
inline constexpr bool wire_frozen = false;

}  // namespace handoff
