// Small modules that tests of the engine train.
#pragma once

#include "lockstep/error.h"

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::test {

using Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

// Parameters given by name and shape, all filled with one value; no forward of its own.
struct ParametersImpl : torch::nn::Module {
  ParametersImpl(const Shapes& shapes, double value) {
    for (const auto& [name, shape] : shapes) {
      register_parameter(name, torch::full(shape, value));
    }
  }
  torch::Tensor& at(const std::string& name) { return parameters_[name]; }
};

class Parameters : public torch::nn::ModuleHolder<ParametersImpl> {
 public:
  explicit Parameters(const Shapes& shapes, double value = 0.0)
      : ModuleHolder(std::make_shared<ParametersImpl>(shapes, value)) {}
  torch::Tensor& operator[](const std::string& name) { return impl_->at(name); }
};

// A perceptron with dropout: enough layers for several buckets.
struct PerceptronImpl : torch::nn::Module {
  explicit PerceptronImpl(std::int64_t width = 40, std::int64_t layers = 4, double dropout = 0.0) {
    for (std::int64_t i = 0; i < layers; ++i) {
      linears.push_back(
          register_module("linear" + std::to_string(i), torch::nn::Linear(width, width)));
    }
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    drop = register_module("drop", torch::nn::Dropout(dropout));
  }
  // x: [samples, width] → [samples, width]
  torch::Tensor forward(torch::Tensor x) {
    for (auto& linear : linears) {
      x = drop(torch::gelu(linear(x)));
    }
    return norm(x.to(norm->weight.scalar_type()));
  }
  std::vector<torch::nn::Linear> linears;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Dropout drop{nullptr};
};
TORCH_MODULE(Perceptron);

inline std::vector<double> values_of(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kFloat64).reshape({-1}).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// The text of the lockstep::Error that `body` throws.
template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void append(std::vector<double>& to, const std::vector<double>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace lockstep::test
