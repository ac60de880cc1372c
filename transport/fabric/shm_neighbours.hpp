// Two shm endpoints of one process use each other's mapping instead of one of their own (libfabric 1.17), so
// that closing one makes the other touch memory that is gone. Here a closed endpoint whose neighbour is still
// open is kept aside, unregistered and never polled again (nothing lands through it), until the neighbour is
// closed too. Endpoints of different processes are closed at once. Thread-safe.
#pragma once

#include <string>

namespace handoff::transport::fabric {

class endpoint;

/// An endpoint of this process was opened.
void enter_neighbour(const std::string& name);
/// `local` will talk to `peer`, which may be an endpoint of this process. False: it was one, and is closed;
/// libfabric still remembers where its mapping was and must not be asked.
bool link_neighbours(const std::string& local, const std::string& peer);
/// Deletes `closed`, and those that were kept for it, as soon as none of them is in use.
void retire_neighbour(endpoint* closed);

}  // namespace handoff::transport::fabric
