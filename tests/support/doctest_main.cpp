// The one entry point of every test executable.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#ifdef __SANITIZE_ADDRESS__
/// libfabric 1.17 loses the description of a connection request that its endpoint does not live to answer.
/// Nothing of ours calls this function.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:fi_dupinfo\n";
}
#endif
