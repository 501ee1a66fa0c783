// Kernels promise bits, so they must not inherit a caller's rounding mode or flush-to-zero.
#pragma once

#if defined(__SSE__)
#include <immintrin.h>
#endif
#include <cfenv>

namespace lockstep::base {

// Sets round-to-nearest with denormals kept for its lifetime, and restores what was set before.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
#if defined(__SSE__)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x1f80);  // all exceptions masked, nearest even, no FTZ, no DAZ
#else
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
#endif
  }
  ~DefaultFloatEnvironment() {
#if defined(__SSE__)
    _mm_setcsr(saved_);
#else
    std::fesetenv(&saved_);
#endif
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__SSE__)
  unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace lockstep::base
