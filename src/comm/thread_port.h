// Ports between threads of this process: what the network's layers are tested with where no MPI is.
#pragma once

#include "comm/port.h"

#include <memory>
#include <vector>

namespace lockstep::comm {

// `size` of them that reach each other, one per thread.
std::vector<std::shared_ptr<Port>> ports_of_threads(int size);

}  // namespace lockstep::comm
