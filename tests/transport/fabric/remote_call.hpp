// How a test's process talks to the processes of its rig: a transport's calls over one socket, its events
// over another, as bytes. Both ends are the same build.
#pragma once

#include "transport/transport.hpp"

#include <type_traits>

namespace handoff::transport::contract {

enum class call : std::uint8_t {
  register_region,
  unregister_region,
  open_peer,
  connect_peer,
  submit,
  send_frame,
  fence,
  close_peer,
  status,
  close,
  leave,
};

/// Bytes of values, written and read in the same order.
class parcel {
 public:
  parcel() = default;
  explicit parcel(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  const std::vector<std::byte>& bytes() const { return bytes_; }

  template <class T>
  parcel& put(const T& x);
  template <class T>
  T get();

 private:
  void append(const void* from, std::size_t n) {
    const auto* at = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), at, at + n);
  }
  void take(void* to, std::size_t n);

  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

/// One parcel with its length in front. False: the other side is gone.
bool send_parcel(int socket, const parcel& p);
bool receive_parcel(int socket, parcel& p);

// -- what is put and got -----------------------------------------------------------------------------

template <class T>
concept plain = std::is_trivially_copyable_v<T>;

template <class T>
struct parcelled;  // for all that is not plain

template <class T>
parcel& parcel::put(const T& x) {
  if constexpr (plain<T>)
    append(&x, sizeof(x));
  else
    parcelled<T>::put(*this, x);
  return *this;
}

template <class T>
T parcel::get() {
  if constexpr (plain<T>) {
    T x{};
    take(&x, sizeof(x));
    return x;
  } else {
    return parcelled<T>::get(*this);
  }
}

template <plain T>
struct parcelled<std::vector<T>> {
  static void put(parcel& p, const std::vector<T>& x) {
    p.put<std::uint64_t>(x.size());
    for (const T& y : x) p.put(y);
  }
  static std::vector<T> get(parcel& p) {
    std::vector<T> x(p.get<std::uint64_t>());
    for (T& y : x) y = p.get<T>();
    return x;
  }
};

template <>
struct parcelled<std::string> {
  static void put(parcel& p, const std::string& x) { p.put(std::vector<char>(x.begin(), x.end())); }
  static std::string get(parcel& p) {
    const auto x = p.get<std::vector<char>>();
    return {x.begin(), x.end()};
  }
};

template <>
struct parcelled<error> {
  static void put(parcel& p, const error& x) { p.put(x.code).put(x.detail).put(x.origin); }
  static error get(parcel& p) {
    error x;
    x.code = p.get<errc>();
    x.detail = p.get<std::string>();
    x.origin = p.get<std::string>();
    return x;
  }
};

template <>
struct parcelled<outgoing_frame> {
  static void put(parcel& p, const outgoing_frame& x) { p.put(x.type).put(x.payload).put(x.urgent); }
  static outgoing_frame get(parcel& p) {
    outgoing_frame x;
    x.type = p.get<message_type>();
    x.payload = p.get<std::vector<std::byte>>();
    x.urgent = p.get<bool>();
    return x;
  }
};

template <>
struct parcelled<transfer> {
  static void put(parcel& p, const transfer& x) {
    p.put(x.id).put(x.peer).put(x.blocks).put(x.last_blocks).put(x.notify.has_value());
    if (x.notify) p.put(*x.notify);
    p.put(x.timeout);
  }
  static transfer get(parcel& p) {
    transfer x;
    x.id = p.get<transfer_id>();
    x.peer = p.get<peer_id>();
    x.blocks = p.get<std::vector<block>>();
    x.last_blocks = p.get<std::vector<block>>();
    if (p.get<bool>()) x.notify = p.get<outgoing_frame>();
    x.timeout = p.get<duration>();
    return x;
  }
};

template <>
struct parcelled<endpoint_record> {
  static void put(parcel& p, const endpoint_record& x) {
    p.put(x.provider).put(x.protocol).put(x.host_id).put(x.address).put(x.probe).put(x.regions);
  }
  static endpoint_record get(parcel& p) {
    endpoint_record x;
    x.provider = p.get<std::string>();
    x.protocol = p.get<std::uint16_t>();
    x.host_id = p.get<std::string>();
    x.address = p.get<std::vector<std::uint8_t>>();
    x.probe = p.get<remote_region>();
    x.regions = p.get<std::vector<remote_region>>();
    return x;
  }
};

template <>
struct parcelled<settings> {
  static void put(parcel& p, const settings& x) {
    p.put(x.write_bytes_max).put(x.window).put(x.transfers_max).put(x.peers_max).put(x.probe_timeout);
    p.put(x.heartbeat_interval).put(x.silence_after).put(x.spin).put(x.nap_max).put(x.incarnation);
  }
  static settings get(parcel& p) {
    settings x;
    x.write_bytes_max = p.get<std::uint64_t>();
    x.window = p.get<std::uint32_t>();
    x.transfers_max = p.get<std::uint32_t>();
    x.peers_max = p.get<std::uint32_t>();
    for (auto* d : {&x.probe_timeout, &x.heartbeat_interval, &x.silence_after, &x.spin, &x.nap_max})
      *d = p.get<duration>();
    x.incarnation = p.get<incarnation_id>();
    return x;
  }
};

template <>
struct parcelled<event> {
  static void put(parcel& p, const event& x);
  static event get(parcel& p);
};

/// A call's answer: void as a bool, else the value, or the error.
template <class T>
void put_answer(parcel& p, const expected<T>& x) {
  p.put(x.has_value());
  if (!x)
    p.put(x.error());
  else if constexpr (!std::is_void_v<T>)
    p.put(*x);
}
template <class T>
expected<T> get_answer(parcel& p) {
  if (!p.get<bool>()) return tl::unexpected(p.get<error>());
  if constexpr (std::is_void_v<T>)
    return {};
  else
    return p.get<T>();
}

}  // namespace handoff::transport::contract
