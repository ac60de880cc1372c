// The control connections of a simulated world: ordered streams of messages that open with a hello, break
// when an end dies, and are refused where nobody listens. Stands for sockets and brokers.
#pragma once

#include "tools/sim/host.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace handoff::sim {

class control_net {
 public:
  control_net(kernel& k, duration greeting_timeout) : k_(k), greeting_timeout_(greeting_timeout) {}

  void listen(const std::string& address, host& who) { listeners_[address] = {who.slot(), &who}; }
  /// `told`: the other ends hear of it at once, as when the kernel resets its connections; else only when
  /// retransmission gives up.
  void crashed(host& who, bool told);
  /// Nothing gets through from one slot to the other until it is healed; then it arrives.
  void cut(std::size_t from, std::size_t to, bool is_cut);
  /// Resets one of the open connections; false: there is none.
  bool break_one(dice& random);

  // -- for processes

  void dial(host& who, part owner, std::uint64_t ticket, const std::string& address);
  void send(host& who, const control_send& call);
  void close(host& who, connection_id id);
  std::size_t open_of(const host& who) const;

 private:
  struct end {
    host* who = nullptr;
    bool open = false;
    std::vector<part> users;
    time_point last;  ///< arrival of the last thing sent to it
  };
  struct connection {
    end ends[2];  ///< 0: who dialled
    std::uint64_t ticket = 0;
    std::string address;
  };
  struct listener {
    std::size_t slot = 0;
    host* who = nullptr;
  };

  static std::uint64_t number_of(connection_id id) { return id.value / 2; }
  static std::size_t side_of(connection_id id) { return id.value % 2; }
  static connection_id id_of(std::uint64_t number, std::size_t side) { return {number * 2 + side}; }
  connection* find(std::uint64_t number);
  void reach(std::uint64_t number);
  void accept(std::uint64_t number);
  void opened(std::uint64_t number);
  /// Runs at the other end, in order, as soon as the network lets it.
  void carry(std::uint64_t number, std::size_t to, std::function<void()> what);
  void arrive(std::uint64_t number, std::size_t to, const std::shared_ptr<const wire::bytes>& message);
  /// This end is over: its users are told, and the other end if it does not know.
  void finish(std::uint64_t number, std::size_t side, const error& reason, bool tell_other);
  static void tell(host& who, part user, control_event event);

  kernel& k_;
  duration greeting_timeout_;
  std::map<std::string, listener> listeners_;
  std::map<std::uint64_t, connection> connections_;
  std::uint64_t next_ = 1;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::function<void()>>> held_;
};

}  // namespace handoff::sim
