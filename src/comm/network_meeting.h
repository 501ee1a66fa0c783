// How processes that know each other only through a Port come together: who is on which host, and
// what rank 0 says to all.
#pragma once

#include "comm/port.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::comm {

struct Acquaintance {
  std::vector<int> host_of;  // per rank of the port, hosts numbered from 0 as they first appear
  std::string job;           // a nonce: the same on all ranks, of no other job

  int hosts() const;
};

// Collective over the port's processes, on `channel`. `host` names this process's host: two
// processes share memory where it is equal. Throws TimedOut naming the ranks that never answered.
Acquaintance meet_over(Port& port, int channel, const std::string& host,
                       std::chrono::milliseconds deadline);

// This host, as no other one calls itself: its name and the kernel's boot id.
std::string host_identity();

}  // namespace lockstep::comm
