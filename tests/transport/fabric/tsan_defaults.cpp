// libfabric is not built for the thread sanitizer: what it copies, locks and signals is not looked at, so
// that reports are about this project's own threads.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libfabric.so\n"
         "race:libfabric.so\n"
         "mutex:libfabric.so\n"
         "mutex:_dl_call_fini\n"  // its destructor: the call is a jump, its library is not seen
         "deadlock:libfabric.so\n"
         "signal:libfabric.so\n"
         "signal:libnuma.so\n";
}
