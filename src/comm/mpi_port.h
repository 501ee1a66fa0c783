// The processes that an MPI launcher started, as a Port (MPI: A Message-Passing Interface Standard
// 4.1, chapters 3 and 11).
//
// Lockstep calls MPI from the threads that use its groups, one at a time, which
// MPI_THREAD_FUNNELED or SERIALIZED cover; an application that initialised MPI keeps it.
#pragma once

#include "comm/port.h"

#include <memory>

namespace lockstep::comm {

// Loads and initialises MPI (unless the application did), on a communicator of our own. Collective
// over MPI_COMM_WORLD. The last owner ends MPI if we began it, unless the port was abandoned.
// Throws UsageError where there is no MPI, SystemError with MPI's words.
std::shared_ptr<Port> port_of_mpi();

}  // namespace lockstep::comm
