// Runs a check under every SIMD target that was compiled in and that this CPU has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>

namespace lockstep::test {

// Restores Highway's own choice when it goes out of scope, a failed assertion included.
class ForcedTarget {
 public:
  explicit ForcedTarget(std::int64_t target) { hwy::SetSupportedTargetsForTest(target); }
  ~ForcedTarget() { hwy::SetSupportedTargetsForTest(0); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

template <class Check>
void on_every_target(const Check& check) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_GE(targets.size(), 2u) << "a baseline and something better";
  for (const std::int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    const ForcedTarget forced(target);
    check();
  }
}

}  // namespace lockstep::test
