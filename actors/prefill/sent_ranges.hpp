// Which tokens of which layers a source's engine has handed over, so that nothing is sent twice and "last"
// is checked against what is still missing. Pure.
#pragma once

#include "transport/layout/plan.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace handoff {

class sent_ranges {
 public:
  explicit sent_ranges(const layout_descriptor& layout);

  /// Was any of this sent before?
  bool overlaps(const layout::range& what) const;
  void add(const layout::range& what);
  /// Is [from, to) of every layer of the component here, counting `more` too? coverage_gap names the first
  /// layer and token that are missing.
  error missing(component_id component, std::uint64_t from, std::uint64_t to,
                const layout::range& more) const;
  /// Up to which token everything from `from` on was added, in every layer of the component.
  std::uint64_t reached(component_id component, std::uint64_t from) const;

 private:
  using interval = std::pair<std::uint64_t, std::uint64_t>;  ///< [first, last)
  struct layer {
    std::vector<component_id> components;
    std::vector<interval> sent;  ///< disjoint, by token
  };
  std::map<std::uint32_t, layer> layers_;
};

}  // namespace handoff
