// Models and questions for tests of the planner.
#pragma once

#include "plan/query.h"

#include <vector>

namespace lockstep::plan {

// A model of `blocks` blocks like GPT-2's: embeddings, blocks with norms, a final norm.
inline std::vector<Member> members_of(std::int64_t blocks, std::int64_t width,
                                      std::int64_t vocabulary) {
  std::vector<Member> all{{vocabulary * width}, {8 * width}};
  for (std::int64_t block = 1; block <= blocks; ++block) {
    const auto unit = static_cast<std::size_t>(block);
    for (const std::int64_t elements : {3 * width * width, 3 * width, width * width, width,
                                        4 * width * width, 4 * width, 4 * width * width, width}) {
      all.push_back({elements, unit});
    }
    all.insert(all.end(), 4, {width, unit, true});
  }
  all.insert(all.end(), 2, {width, 0, true});
  return all;
}

// Eight ranks a host, round figures: 1e12 operations and 1e11 bytes a second.
inline Hardware round_hardware() {
  return {.name = "round",
          .description = "a machine of round figures",
          .source = "made up",
          .ranks_per_host = 8,
          .memory_bytes = 80'000'000'000,
          .host_memory = HostMemory::separate,
          .f32_flops = 1e12,
          .bf16_flops = 2e12,
          .reached = 0.5,
          .memory_bytes_per_s = 1e11,
          .inside = {1e-6, 1e10},
          .between = {1e-5, 1e9}};
}

inline PlanQuery query_of(std::int64_t parameters, int ranks) {
  PlanQuery query;
  query.parameters = parameters;
  query.ranks = ranks;
  query.hardware = round_hardware();
  return query;
}

}  // namespace lockstep::plan
