// A machine, as time and capacity need it. Figures are those of one rank (a GPU, or a process's
// share of a CPU) unless they say host.
#pragma once

#include "plan/dials.h"

#include <cstdint>
#include <string>

namespace lockstep::plan {

// One message of n bytes takes latency_s + n / bytes_per_s.
struct Link {
  double latency_s = 0;
  double bytes_per_s = 0;  // in one direction

  double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
};

struct Hardware {
  std::string name;
  std::string description;
  std::string source;  // where the figures come from: a page, or the command that measured
  int ranks_per_host = 1;
  std::int64_t memory_bytes = 0;
  HostMemory host_memory = HostMemory::separate;
  double f32_flops = 0;  // per second, of matrix products
  double bf16_flops = 0;
  double reached = 1;  // share of that which a training step's products reach, 0 to 1
  double memory_bytes_per_s = 0;
  Link inside;   // of one rank, to others on its host
  Link between;  // of one host, to others
};

}  // namespace lockstep::plan
