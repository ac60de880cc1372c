#include "tests/messages/allocation_meter.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {
thread_local bool metering = false;
thread_local std::size_t largest = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  if (metering) largest = std::max(largest, bytes);
  if (auto* p = std::malloc(std::max<std::size_t>(bytes, 1))) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace handoff::test {

allocation_meter::allocation_meter() {
  largest = 0;
  metering = true;
}
allocation_meter::~allocation_meter() {
  metering = false;
}
std::size_t allocation_meter::largest_bytes() const {
  return largest;
}

}  // namespace handoff::test
