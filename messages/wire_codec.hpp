// The templates behind messages/wire.hpp: two inspectors, one that appends fields and one that reads them.
//
// What a type may say about itself, next to its definition and found by argument-dependent lookup:
//
//   bool wire_frozen<T>                 a struct that never grows has no length prefix
//   E last_enumerator(E)                the highest legal enumerator; every enum has one
//   E from_wire(E, underlying)          instead: maps every number, for enums that peers may extend
//   T for_wire(const T&)                what to send in place of a value, for example a shortened text
//   error check_limits(const T&)        judged after decoding; its text begins with the field's name
#pragma once

#include "messages/wire.hpp"

#include <string>
#include <type_traits>
#include <utility>

namespace handoff::wire::detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_id = false;
template <class Tag, class Rep>
inline constexpr bool is_id<strong_id<Tag, Rep>> = true;

/// Little-endian, `width` bytes.
inline void store(std::uint64_t x, std::byte* to, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) to[i] = static_cast<std::byte>(x >> (8 * i));
}
inline std::uint64_t load(const std::byte* from, std::size_t width) {
  std::uint64_t x = 0;
  for (std::size_t i = 0; i < width; ++i) x |= static_cast<std::uint64_t>(from[i]) << (8 * i);
  return x;
}

/// Fewest bytes that a value takes: what a count is held against before anything is allocated.
struct minimum_size {
  using own_inspector = void;
  std::size_t bytes = 0;

  template <class... Ts>
  bool object(const char*, field_ref<Ts>...) {
    bytes = (of<Ts>() + ... + std::size_t{0});
    return true;
  }
  template <class T>
  static std::size_t of() {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      return sizeof(T);
    } else if constexpr (wire_frozen<T>) {
      minimum_size size;
      T x{};
      inspect(size, x);
      return size.bytes;
    } else {
      return sizeof(std::uint32_t);
    }
  }
};

class encoder {
 public:
  using own_inspector = void;
  explicit encoder(bytes& out) : out_(out) {}

  template <class... Ts>
  bool object(const char*, field_ref<Ts>... refs) {
    (value(refs.value), ...);
    return true;
  }

  /// The fields of a struct, without a length; inspectors of all kinds share one `inspect`, which takes a
  /// reference that this one never writes through.
  template <class T>
  void record(const T& x) {
    if constexpr (requires { for_wire(x); }) {
      auto sent = for_wire(x);
      inspect(*this, sent);
    } else {
      inspect(*this, const_cast<T&>(x));
    }
  }

 private:
  template <class T>
  void value(const T& x) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      integer(x);
    } else if constexpr (is_id<T>) {
      integer(x.value);
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::uint8_t>>) {
      integer(static_cast<std::uint32_t>(x.size()));
      auto raw = std::as_bytes(std::span(x));
      out_.insert(out_.end(), raw.begin(), raw.end());
    } else if constexpr (is_vector<T>) {
      integer(static_cast<std::uint32_t>(x.size()));
      for (const auto& element : x) value(element);
    } else if constexpr (wire_frozen<T>) {
      record(x);
    } else {
      auto at = out_.size();
      integer(std::uint32_t{0});
      record(x);
      store(out_.size() - at - sizeof(std::uint32_t), &out_[at], sizeof(std::uint32_t));
    }
  }

  template <class T>
  void integer(T x) {
    auto at = out_.size();
    out_.resize(at + sizeof(T));
    store(static_cast<std::uint64_t>(x), &out_[at], sizeof(T));
  }

  bytes& out_;
};

class decoder {
 public:
  explicit decoder(byte_span payload) : data_(payload), end_(payload.size()) {}

  /// Reads fields until the struct or its bytes end; bytes may only end at a field's border.
  template <class T>
  bool record(T& x, bool may_end) {
    if (depth_ == limits::nesting) return fail_nesting();
    ++depth_;
    reader fields{*this, may_end};
    if (!inspect(fields, x)) return false;
    --depth_;
    if constexpr (requires { check_limits(x); }) {
      if (auto e = check_limits(x)) return fail_limits(e);
    }
    return true;
  }

  error take_error() { return std::move(error_); }

 private:
  struct step {
    const char* name;  ///< null for a list's element
    std::size_t index;
    const step* parent;
  };

  struct reader {
    using own_inspector = void;
    decoder& d;
    bool may_end;

    template <class... Ts>
    bool object(const char* type, field_ref<Ts>... refs) {
      if (!d.root_) d.root_ = type;
      return (((may_end && d.at_ == d.end_) || d.named(refs.name, 0, refs.value)) && ...);
    }
  };

  template <class T>
  bool named(const char* name, std::size_t index, T& x) {
    step here{name, index, path_};
    path_ = &here;
    if (!value(x)) return false;
    path_ = here.parent;
    return true;
  }

  template <class T>
  bool value(T& x) {
    if constexpr (std::is_same_v<T, bool>) {
      return boolean(x);
    } else if constexpr (std::is_enum_v<T>) {
      return enumerator(x);
    } else if constexpr (std::is_integral_v<T>) {
      return integer(x);
    } else if constexpr (is_id<T>) {
      return integer(x.value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return text(x);
    } else if constexpr (is_vector<T>) {
      return list(x);
    } else if constexpr (wire_frozen<T>) {
      return record(x, false);
    } else {
      return growing(x);
    }
  }

  template <class T>
  bool integer(T& x) {
    if (left() < sizeof(T)) return fail_short(sizeof(T));
    x = static_cast<T>(load(&data_[at_], sizeof(T)));
    at_ += sizeof(T);
    return true;
  }

  template <class E>
  bool enumerator(E& x) {
    std::underlying_type_t<E> number{};
    if (!integer(number)) return false;
    if constexpr (requires { from_wire(E{}, number); }) {
      x = from_wire(E{}, number);
    } else {
      constexpr auto last = static_cast<std::underlying_type_t<E>>(last_enumerator(E{}));
      static_assert(std::is_unsigned_v<decltype(last)>);
      if (number > last) return fail_value(number, last, sizeof number);
      x = static_cast<E>(number);
    }
    return true;
  }

  template <class T>
  bool list(std::vector<T>& x) {
    constexpr bool raw = std::is_same_v<T, std::uint8_t>;  // bounded by the message alone
    std::size_t size = 0;
    if (!count(size, raw ? data_.size() : limits::list_length, minimum_size::of<T>())) return false;
    if constexpr (raw) {
      auto from = reinterpret_cast<const std::uint8_t*>(data_.data()) + at_;
      x.assign(from, from + size);
      at_ += size;
    } else {
      x.assign(size, T{});
      for (std::size_t i = 0; i < size; ++i)
        if (!named(nullptr, i, x[i])) return false;
    }
    return true;
  }

  template <class T>
  bool growing(T& x) {
    std::size_t size = 0;
    if (!count(size, data_.size(), 1)) return false;
    auto outer_end = std::exchange(end_, at_ + size);
    if (!record(x, true)) return false;
    at_ = std::exchange(end_, outer_end);
    return true;
  }

  bool boolean(bool& x);
  bool text(std::string& x);
  /// A length or count: at most `limit`, and no more than the bytes that are left can hold.
  bool count(std::size_t& size, std::size_t limit, std::size_t element_bytes);
  std::size_t left() const { return end_ - at_; }

  bool fail(errc code, const std::string& what, std::size_t at);
  bool fail_short(std::size_t needed);
  bool fail_value(std::uint64_t number, std::uint64_t last, std::size_t width);
  bool fail_nesting();
  bool fail_limits(const error& e);
  std::string path() const;

  byte_span data_;
  std::size_t at_ = 0;
  std::size_t end_;  ///< of the innermost struct that has a length
  int depth_ = 0;
  const char* root_ = nullptr;
  const step* path_ = nullptr;
  error error_;
};

}  // namespace handoff::wire::detail

namespace handoff::wire {

template <class T>
void encode_payload(const T& message, bytes& out) {
  detail::encoder(out).record(message);
}

template <class T>
expected<T> decode_payload(byte_span payload) {
  T message{};
  detail::decoder decoder(payload);
  if (!decoder.record(message, true)) return unexpected(decoder.take_error());
  return message;
}

template <class T>
bytes encode(const T& message, header h) {
  bytes out;
  out.reserve(header_bytes + 64);  // most messages; also, g++ 12 warns of bounds where a vector grows from 32
  out.resize(header_bytes);
  encode_payload(message, out);
  h.type = T::type;
  seal(h, out);
  return out;
}

}  // namespace handoff::wire
