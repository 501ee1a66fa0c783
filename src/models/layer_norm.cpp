#include "models/layer_norm.h"

#include "base/invariant.h"

#include <ATen/Parallel.h>

namespace lockstep::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kEpsilon = 1e-5;

// What one pass over the rows needs. Rows × columns, contiguous.
struct Rows {
  const c10::BFloat16* sent;  // the gradient of y
  const c10::BFloat16* x;
  const float* mean;       // [rows]
  const float* deviation;  // [rows]: 1 / √(variance + ε)
  std::int64_t rows;
  std::int64_t columns;
};

// Adds over the rows, in their order: the bits do not hang on how columns are shared out.
void add_columns(const Rows& in, std::int64_t begin, std::int64_t end, float* weight_gradient,
                 float* bias_gradient) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const c10::BFloat16* sent = in.sent + row * in.columns;
    const c10::BFloat16* x = in.x + row * in.columns;
    const float mean = in.mean[row];
    const float deviation = in.deviation[row];
    for (std::int64_t column = begin; column < end; ++column) {
      const auto gradient = static_cast<float>(sent[column]);
      bias_gradient[column] += gradient;
      weight_gradient[column] += gradient * ((static_cast<float>(x[column]) - mean) * deviation);
    }
  }
}

class MixedLayerNorm : public torch::autograd::Function<MixedLayerNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const Tensor& bias) {
    const Tensor rows = x.contiguous();
    auto [y, mean, deviation] =
        torch::native_layer_norm(rows, weight.sizes(), weight, bias, kEpsilon);
    context->save_for_backward({rows, weight, bias, mean, deviation});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const Tensor &mean = saved[3], &deviation = saved[4];
    const Tensor sent = gradients[0].contiguous();
    const Tensor x_gradient = std::get<0>(torch::native_layer_norm_backward(
        sent, x, weight.sizes(), mean, deviation, weight, bias, {true, false, false}));
    const Tensor weight_gradient = torch::zeros_like(weight);  // [C]
    const Tensor bias_gradient = torch::zeros_like(bias);      // [C]
    const Rows in{.sent = sent.const_data_ptr<c10::BFloat16>(),
                  .x = x.const_data_ptr<c10::BFloat16>(),
                  .mean = mean.const_data_ptr<float>(),
                  .deviation = deviation.const_data_ptr<float>(),
                  .rows = mean.numel(),
                  .columns = weight.numel()};
    float* weights = weight_gradient.mutable_data_ptr<float>();
    float* biases = bias_gradient.mutable_data_ptr<float>();
    constexpr std::int64_t kColumnsOfAThread = 64;
    at::parallel_for(0, in.columns, kColumnsOfAThread, [&](std::int64_t begin, std::int64_t end) {
      add_columns(in, begin, end, weights, biases);
    });
    return {x_gradient, weight_gradient, bias_gradient};
  }
};

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.scalar_type() == weight.scalar_type()) {
    return torch::layer_norm(x, weight.sizes(), weight, bias, kEpsilon);
  }
  LOCKSTEP_INVARIANT(static_cast<int>(x.scalar_type()), ==, static_cast<int>(torch::kBFloat16));
  LOCKSTEP_INVARIANT(static_cast<int>(weight.scalar_type()), ==, static_cast<int>(torch::kFloat32));
  return MixedLayerNorm::apply(x, weight, bias);
}

}  // namespace lockstep::models
