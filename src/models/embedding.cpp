#include "models/embedding.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lockstep::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The distinct tokens in order of first appearance, and which of them each position has.
struct DistinctTokens {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> place;  // [positions]
};

DistinctTokens distinct(const Tensor& tokens) {
  DistinctTokens result;
  std::unordered_map<std::int64_t, std::int64_t> seen;
  const std::int64_t* ids = tokens.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    const auto next = static_cast<std::int64_t>(result.tokens.size());
    const auto [entry, fresh] = seen.try_emplace(ids[i], next);
    if (fresh) {
      result.tokens.push_back(ids[i]);
    }
    result.place.push_back(entry->second);
  }
  return result;
}

// [distinct, C] f32: the rows of each token added in the order of their positions, so that the
// number of threads changes no bit.
Tensor summed_rows(const Tensor& sent, const DistinctTokens& found) {
  const Tensor wide = sent.to(torch::kFloat32).contiguous();  // [positions, C]
  const std::int64_t width = wide.size(1);
  const auto count = static_cast<std::int64_t>(found.tokens.size());
  Tensor sums = torch::zeros({count, width}, wide.options());
  const float* from = wide.const_data_ptr<float>();
  float* to = sums.mutable_data_ptr<float>();
  for (std::size_t i = 0; i < found.place.size(); ++i) {
    float* row = to + found.place[i] * width;
    for (std::int64_t c = 0; c < width; ++c) {
      row[c] += from[c];
    }
    from += width;
  }
  return sums;
}

class Embedding : public torch::autograd::Function<Embedding> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& tokens, const Tensor& weight) {
    context->save_for_backward({tokens});
    context->saved_data["rows"] = weight.size(0);
    return torch::embedding(weight, tokens);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor tokens = context->get_saved_variables()[0].contiguous();
    const std::int64_t rows = context->saved_data["rows"].toInt();
    const std::int64_t width = gradients[0].size(-1);
    const DistinctTokens found = distinct(tokens);
    const Tensor sent = gradients[0].reshape({-1, width});  // [positions, C]
    const Tensor sums = summed_rows(sent, found);           // [distinct, C]
    const Tensor indices = torch::tensor(found.tokens, torch::kInt64).unsqueeze(0);
    const Tensor sparse = torch::sparse_coo_tensor(indices, sums.to(sent.scalar_type()),
                                                   {rows, width}, torch::TensorOptions());
    // Distinct by construction; LibTorch would sort and copy to find out.
    sparse._coalesced_(true);
    return {Tensor(), sparse};
  }
};

class SharedWeight : public torch::autograd::Function<SharedWeight> {
 public:
  static Tensor forward(AutogradContext*, const Tensor& weight) { return weight.view_as(weight); }

  static variable_list backward(AutogradContext*, variable_list gradients) {
    if (gradients[0].defined() && gradients[0].is_sparse()) {
      gradients[0] = gradients[0].to_dense();
    }
    return gradients;
  }
};

}  // namespace

Tensor embed(const Tensor& tokens, const Tensor& weight) {
  return Embedding::apply(tokens, weight);
}

Tensor shared_weight(const Tensor& weight) {
  return weight.requires_grad() && torch::GradMode::is_enabled() ? SharedWeight::apply(weight)
                                                                 : weight;
}

}  // namespace lockstep::models
