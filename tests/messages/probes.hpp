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
