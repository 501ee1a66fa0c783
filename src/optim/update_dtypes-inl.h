// Which dtypes an optimizer's update comes in: one table for all of them. A Highway -inl header:
// the source that includes it is compiled once per target.
#if defined(LOCKSTEP_OPTIM_UPDATE_DTYPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_OPTIM_UPDATE_DTYPES_INL_H_
#undef LOCKSTEP_OPTIM_UPDATE_DTYPES_INL_H_
#else
#define LOCKSTEP_OPTIM_UPDATE_DTYPES_INL_H_
#endif

#include "base/simd-inl.h"
#include "lockstep/dtype.h"

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::optim::HWY_NAMESPACE {

// Calls kernel.operator()<Weight, Gradient, kCast>(weights): `weights` are what the update writes
// (a master or the parameter), with kCast the parameter is their rounding into bf16. False where
// the dtypes of parameter and gradient are none that optimizers update.
template <class Vectors, class Kernel>
bool OverUpdateDtypes(const Vectors& vectors, const Kernel& kernel) {
  using F32 = lockstep::HWY_NAMESPACE::PlainElement<float>;
  using F64 = lockstep::HWY_NAMESPACE::PlainElement<double>;
  using Bf16 = lockstep::HWY_NAMESPACE::Bfloat16Element;
  const Dtype parameter = vectors.parameter.dtype;
  const Dtype gradient = vectors.gradient.dtype;
  auto* const data = static_cast<float*>(vectors.parameter.data);
  if (parameter == Dtype::f32 && gradient == Dtype::f32) {
    kernel.template operator()<F32, F32, false>(data);
  } else if (parameter == Dtype::f32 && gradient == Dtype::bf16) {
    kernel.template operator()<F32, Bf16, false>(data);
  } else if (parameter == Dtype::bf16 && gradient == Dtype::bf16) {
    kernel.template operator()<F32, Bf16, true>(vectors.master);
  } else if (parameter == Dtype::bf16 && gradient == Dtype::f32) {
    kernel.template operator()<F32, F32, true>(vectors.master);
  } else if (parameter == Dtype::f64 && gradient == Dtype::f64) {
    kernel.template operator()<F64, F64, false>(static_cast<double*>(vectors.parameter.data));
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::optim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // LOCKSTEP_OPTIM_UPDATE_DTYPES_INL_H_
