#include "train/narrow_modules.h"

namespace lockstep::train {
namespace {

bool adds_in_its_own_type(const torch::nn::Module& module) {
  return module.as<torch::nn::LayerNorm>() != nullptr ||
         module.as<torch::nn::GroupNorm>() != nullptr ||
         module.as<torch::nn::BatchNorm1d>() != nullptr ||
         module.as<torch::nn::BatchNorm2d>() != nullptr ||
         module.as<torch::nn::BatchNorm3d>() != nullptr ||
         module.as<torch::nn::Embedding>() != nullptr ||
         module.as<torch::nn::EmbeddingBag>() != nullptr;
}

bool has_narrow_weight(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters(/*recurse=*/false)) {
    if (parameter.scalar_type() == torch::kBFloat16) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> narrow_modules(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    if (adds_in_its_own_type(*item.value()) && has_narrow_weight(*item.value())) {
      names.push_back(item.key());
    }
  }
  return names;
}

}  // namespace lockstep::train
