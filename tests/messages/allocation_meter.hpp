// Largest single allocation of the calling thread while a meter lives.
#pragma once

#include <cstddef>

namespace handoff::test {

class allocation_meter {
 public:
  allocation_meter();
  ~allocation_meter();
  allocation_meter(const allocation_meter&) = delete;
  allocation_meter& operator=(const allocation_meter&) = delete;
  std::size_t largest_bytes() const;
};

}  // namespace handoff::test
