// A finished run's figures, as the rules of plan/advice.h want them.
#pragma once

#include "train/report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::train {

// What advice rests on besides the report.
struct AdviceFacts {
  std::int64_t buckets = 0;  // that a step exchanges
  std::vector<std::string> narrow_modules;
  double f32_peak_flops = 0;  // measured when the run was in bf16
  bool small_shared_pages = false;
};

// The report's advice[].
std::vector<std::string> advice_for(const Report& report, const AdviceFacts& facts);

}  // namespace lockstep::train
