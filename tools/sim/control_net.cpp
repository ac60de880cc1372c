#include "tools/sim/control_net.hpp"

#include <algorithm>
#include <memory>

namespace handoff::sim {
namespace {

constexpr duration give_up_after = 5s;

duration hop(dice& random) {
  return random.between(20us, 200us);
}

}  // namespace

control_net::connection* control_net::find(std::uint64_t number) {
  const auto i = connections_.find(number);
  return i == connections_.end() ? nullptr : &i->second;
}

void control_net::tell(host& who, part user, control_event event) {
  who.post(part::network, user,
           [&who, user, event = std::move(event)]() mutable { who.on_control(user, event); });
}

void control_net::carry(std::uint64_t number, std::size_t to, std::function<void()> what) {
  auto* c = find(number);
  if (c == nullptr || c->ends[to].who == nullptr) return;
  const std::pair way{c->ends[1 - to].who->slot(), c->ends[to].who->slot()};
  if (cuts_.contains(way)) {
    held_[way].push_back([this, number, to, what = std::move(what)] { carry(number, to, what); });
    return;
  }
  auto& e = c->ends[to];
  e.last = std::max(e.last, k_.now() + hop(k_.random));
  k_.wire.at(e.last, e.who->index(), std::move(what));
}

// -- opening -----------------------------------------------------------------------------------------------

void control_net::dial(host& who, part owner, std::uint64_t ticket, const std::string& address) {
  const auto number = next_++;
  auto& c = connections_[number];
  c.ends[0].who = &who;
  c.ends[0].users.push_back(owner);
  c.ticket = ticket;
  c.address = address;
  who.later(greeting_timeout_, [this, number] {
    auto* late = find(number);
    if (late != nullptr && !late->ends[0].open)
      finish(number, 0, {errc::timed_out, late->address + " did not say hello in time", {}}, true);
  });
  who.later(hop(k_.random), [this, number] { reach(number); });
}

void control_net::reach(std::uint64_t number) {
  auto* c = find(number);
  if (c == nullptr) return;
  const auto l = listeners_.find(c->address);
  if (l != listeners_.end() && cuts_.contains({c->ends[0].who->slot(), l->second.slot})) {
    held_[{c->ends[0].who->slot(), l->second.slot}].push_back([this, number] { reach(number); });
    return;
  }
  if (l == listeners_.end() || !l->second.who->alive()) {
    const auto refused = error{errc::peer_refused, "cannot reach " + c->address + ": connection refused", {}};
    c->ends[0].who->later(hop(k_.random), [this, number, refused] { finish(number, 0, refused, false); });
    return;
  }
  c->ends[1].who = l->second.who;
  carry(number, 1, [this, number] { accept(number); });
}

void control_net::accept(std::uint64_t number) {
  auto* c = find(number);
  if (c == nullptr) return;
  c->ends[1].open = true;
  carry(number, 0, [this, number] { opened(number); });
}

void control_net::opened(std::uint64_t number) {
  auto* c = find(number);
  if (c == nullptr || c->ends[0].open) return;
  c->ends[0].open = true;
  tell(*c->ends[0].who, c->ends[0].users.front(),
       control_opened{c->ticket, id_of(number, 0), c->ends[1].who->identity()});
}

// -- messages ----------------------------------------------------------------------------------------------

void control_net::send(host&, const control_send& call) {
  const auto number = number_of(call.connection);
  auto* c = find(number);
  if (c == nullptr || !c->ends[side_of(call.connection)].open) return;
  const auto to = 1 - side_of(call.connection);
  carry(number, to, [this, number, to, message = call.message] { arrive(number, to, message); });
}

void control_net::arrive(std::uint64_t number, std::size_t to,
                         const std::shared_ptr<const wire::bytes>& message) {
  auto* c = find(number);
  if (c == nullptr || !c->ends[to].open) return;
  auto& e = c->ends[to];
  const auto header = wire::verify(*message, limits::control_message_bytes);
  if (!header)
    return k_.violate(e.who->name(), "a control message does not decode: {}", to_string(header.error()));
  const auto user = to == 0 ? e.users.front() : e.who->route(header->type);
  if (!user) return;
  if (std::find(e.users.begin(), e.users.end(), *user) == e.users.end()) e.users.push_back(*user);
  auto payload = std::make_shared<const wire::bytes>(message->begin() + wire::header_bytes, message->end());
  tell(*e.who, *user,
       control_received{id_of(number, to), c->ends[1 - to].who->identity(), *header, std::move(payload)});
}

// -- ending ------------------------------------------------------------------------------------------------

void control_net::finish(std::uint64_t number, std::size_t side, const error& reason, bool tell_other) {
  auto* c = find(number);
  if (c == nullptr) return;
  auto& e = c->ends[side];
  if (e.who == nullptr) return;
  const bool opening = side == 0 && !e.open;
  for (auto user : e.users)
    tell(*e.who, user, control_closed{opening ? c->ticket : 0, id_of(number, side), reason});
  e.users.clear();
  const auto other = 1 - side;
  if (tell_other && c->ends[other].who != nullptr) {
    const auto text = e.who->name() + " closed its control connection";
    carry(number, other, [this, number, other, text] {
      finish(number, other, {errc::peer_gone, text, {}}, false);
    });
    e.open = false;
  } else {
    connections_.erase(number);
  }
}

void control_net::close(host&, connection_id id) {
  auto* c = find(number_of(id));
  if (c == nullptr) return;
  c->ends[side_of(id)].users.clear();
  finish(number_of(id), side_of(id), {errc::closed, "closed here", {}}, true);
}

void control_net::crashed(host& who, bool told) {
  for (auto& [address, l] : listeners_)
    if (l.who == &who) l.slot = who.slot();
  for (auto& [number, c] : connections_)
    for (std::size_t side = 0; side < 2; ++side) {
      if (c.ends[side].who != &who || c.ends[1 - side].who == nullptr) continue;
      const auto other = 1 - side;
      const error gone{errc::peer_gone, who.name() + " closed its control connection", {}};
      const auto end = [this, n = number, other, gone] { finish(n, other, gone, false); };
      if (told)
        carry(number, other, end);
      else
        c.ends[other].who->later(give_up_after, end);
    }
}

bool control_net::break_one(dice& random) {
  std::vector<std::uint64_t> open;
  for (auto& [number, c] : connections_)
    if (c.ends[0].open && c.ends[1].open && c.ends[0].who->alive() && c.ends[1].who->alive())
      open.push_back(number);
  if (open.empty()) return false;
  const auto number = open[random.below(open.size())];
  const error reset{errc::peer_gone, "the connection was reset", {}};
  auto& c = connections_.at(number);
  k_.trace(c.ends[0].who->name(), "its control connection to {} is reset", c.ends[1].who->name());
  c.ends[0].who->later(hop(random), [this, number, reset] { finish(number, 0, reset, true); });
  return true;
}

void control_net::cut(std::size_t from, std::size_t to, bool is_cut) {
  if (is_cut) {
    cuts_.insert({from, to});
    return;
  }
  if (cuts_.erase({from, to}) == 0) return;
  for (auto& what : std::exchange(held_[{from, to}], {})) what();
}

std::size_t control_net::open_of(const host& who) const {
  std::size_t count = 0;
  for (const auto& [number, c] : connections_)
    for (const auto& e : c.ends) count += e.who == &who && e.open;
  return count;
}

}  // namespace handoff::sim
