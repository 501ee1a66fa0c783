// An exchange as tests of meetings hold it.
#pragma once

#include "comm/meeting.h"

#include <chrono>

namespace lockstep::test {

inline comm::Exchange exchange_of(int rank, int size) {
  comm::Exchange exchange;
  exchange.key = "key";
  exchange.what = "meeting";
  exchange.rank = rank;
  exchange.size = size;
  exchange.bytes = 4096;
  exchange.deadline = std::chrono::seconds(20);
  return exchange;
}

}  // namespace lockstep::test
