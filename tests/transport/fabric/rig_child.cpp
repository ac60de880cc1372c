// One endpoint of a rig of processes: serves a transport's calls on descriptor 3, writes its events to
// descriptor 4, shares its memory (descriptor 5) with the test. Started by process_rig.cpp alone.
#include "tests/transport/fabric/remote_call.hpp"
#include "transport/fabric/fabric_transport.hpp"

#include <atomic>
#include <cstdlib>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

using namespace handoff;
using namespace handoff::transport;
using namespace handoff::transport::contract;

namespace {

constexpr int calls = 3, events = 4, memory = 5;

class event_writer : public event_sink {
 public:
  void on_events(std::span<event> batch) override {
    for (const event& e : batch) {
      parcel p;
      p.put(e);
      send_parcel(events, p);
      ++sent_;
    }
  }
  std::uint64_t sent() const { return sent_; }

 private:
  std::atomic<std::uint64_t> sent_{0};
};

parcel serve(handoff::transport::transport& t, const event_writer& sink, std::byte* base, call c,
             parcel& in) {
  parcel out;
  switch (c) {
    case call::register_region: {
      const auto offset = in.get<std::uint64_t>();
      const auto bytes = in.get<std::uint64_t>();
      const auto kind = in.get<memory_kind>();
      const auto shown = in.get<bool>();
      const bool null = in.get<bool>();
      put_answer(out, t.register_region({null ? nullptr : base + offset, bytes, kind, shown}));
      break;
    }
    case call::unregister_region:
      put_answer(out, t.unregister_region(in.get<region_id>()));
      break;
    case call::open_peer: {
      const auto peer = in.get<peer_id>();
      const auto session = in.get<session_id>();
      put_answer(out, t.open_peer(peer, session, in.get<std::string>()));
      break;
    }
    case call::connect_peer: {
      const auto peer = in.get<peer_id>();
      put_answer(out, t.connect_peer(peer, in.get<endpoint_record>()));
      break;
    }
    case call::submit:
      put_answer(out, t.submit(in.get<transfer>()));
      break;
    case call::send_frame: {
      const auto peer = in.get<peer_id>();
      put_answer(out, t.send_frame(peer, in.get<outgoing_frame>()));
      break;
    }
    case call::fence:
      t.fence(in.get<peer_id>());
      break;
    case call::close_peer:
      t.close_peer(in.get<peer_id>());
      break;
    case call::status:
      out.put(t.current_status());
      break;
    case call::close:
    case call::leave:
      t.close();
      out.put(sink.sent());
      break;
  }
  return out;
}

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  parcel in;
  if (!receive_parcel(calls, in)) return 1;
  const auto provider = in.get<std::string>();
  const auto bytes = in.get<std::uint64_t>();
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory, 0);
  if (base == MAP_FAILED) return 1;
  event_writer sink;
  auto t = fabric::make_fabric_transport(in.get<settings>(), sink, {provider});
  while (receive_parcel(calls, in)) {
    const auto c = in.get<call>();
    if (!send_parcel(calls, serve(*t, sink, static_cast<std::byte*>(base), c, in))) return 1;
    if (c == call::leave) return 0;
  }
  return 1;
}
