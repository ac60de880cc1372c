// Inspectors that tell where the parts of an encoded message lie, written apart from the codec.
#pragma once

#include "messages/inspect.hpp"
#include "messages/wire.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace handoff::test {

/// A struct with one field of type T: encodes a single value, or nests a message.
template <class T>
struct one {
  T value{};
  friend bool operator==(const one&, const one&) = default;
};
template <class T>
one(T) -> one<T>;
template <class F, class T>
auto inspect(F& f, one<T>& x) {
  return handoff::fields(f, "one", handoff::field("value", x.value));
}

template <class T>
wire::bytes payload_of(const T& message) {
  wire::bytes out;
  wire::encode_payload(message, out);
  return out;
}

/// Payload offsets at which one of the outermost fields ends; the first is 0.
struct border_probe {
  using own_inspector = void;
  std::vector<std::size_t> borders{0};

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (borders.push_back(borders.back() + payload_of(one<Ts>{refs.value}).size()), ...);
    return true;
  }
};

/// Offsets of every length and count of a payload.
struct length_probe {
  using own_inspector = void;
  std::vector<std::size_t> offsets;
  std::size_t at = 0;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (visit(refs.value), ...);
    return true;
  }

 private:
  void length() {
    offsets.push_back(at);
    at += 4;
  }
  template <class T>
  void visit(T& x) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      at += sizeof(T);
    } else {
      if (!wire_frozen<T>) length();
      visit_inside(x);
    }
  }
  void visit_inside(std::string& x) { at += x.size(); }
  template <class T>
  void visit_inside(std::vector<T>& x) {
    for (auto& element : x) visit(element);
  }
  template <class T>
  void visit_inside(T& x) {
    inspect(*this, x);
  }
};

/// Whether fields lie in memory as they are named: in declared order and side by side but for padding, so
/// that no member was left out of `inspect` or changed places.
struct member_probe {
  using own_inspector = void;
  bool complete = true;

  template <class T>
  void check(T& x) {
    const std::byte* base = reinterpret_cast<std::byte*>(&x);
    next_ = base;
    inspect(*this, x);
    expect(alignof(T), base + sizeof(T));
  }
  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (visit(refs.value), ...);
    return true;
  }

 private:
  template <class T>
  void visit(T& x) {
    expect(alignof(T), reinterpret_cast<std::byte*>(&x));
    next_ += sizeof(T);
    if constexpr (wire::detail::is_vector<T>) {
      if constexpr (std::is_class_v<typename T::value_type>) check_inner<typename T::value_type>();
    } else if constexpr (std::is_class_v<T>) {
      check_inner<T>();
    }
  }
  template <class T>
  void check_inner() {
    if constexpr (!std::is_same_v<T, std::string>) {
      member_probe inner;
      T x{};
      inner.check(x);
      complete = complete && inner.complete;
    }
  }
  void expect(std::size_t alignment, const std::byte* at) {
    auto address = reinterpret_cast<std::uintptr_t>(next_);
    address = (address + alignment - 1) / alignment * alignment;
    complete = complete && address == reinterpret_cast<std::uintptr_t>(at);
    next_ = at;
  }

  const std::byte* next_ = nullptr;
};

/// Copies the first `count` of the outermost fields of one message to another.
template <class T>
class prefix_copier {
 public:
  static T copy(T& from, std::size_t count) {
    T to{};
    reader read;
    inspect(read, from);
    writer write{read.addresses, count};
    inspect(write, to);
    return to;
  }

 private:
  struct reader {
    using own_inspector = void;
    std::vector<void*> addresses;
    template <class... Ts>
    bool object(const char*, field_ref<Ts>... refs) {
      (addresses.push_back(&refs.value), ...);
      return true;
    }
  };
  struct writer {
    using own_inspector = void;
    const std::vector<void*>& addresses;
    std::size_t count;
    template <class... Ts>
    bool object(const char*, field_ref<Ts>... refs) {
      std::size_t i = 0;
      ((i < count ? void(refs.value = *static_cast<Ts*>(addresses[i])) : void(), ++i), ...);
      return true;
    }
  };
};

}  // namespace handoff::test
