// The gradient that a step ends with: the memory in which its leaves are summed, what the ranks
// decided on it, and how it shows in the parameters' .grad.
#pragma once

#include "lockstep/group.h"
#include "parallel/decision.h"
#include "parallel/device.h"
#include "parallel/exchange.h"
#include "parallel/flat_model.h"
#include "parallel/gradient_memory.h"
#include "parallel/leaf_sum.h"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::parallel {

// One parameter that has a gradient now, with what updating it needs.
struct Update {
  std::size_t parameter;
  std::int64_t count;
  optim::Vector values;
  float* master;  // nullptr where the values are in full precision themselves
  optim::ConstVector gradient;
};

class MeanGradient {
 public:
  // All references must outlive this. Call hold() next.
  MeanGradient(Device& device, Group& group, const FlatModel& model, Exchange& exchange);

  // Collective where memory is missing: after the first call, when accumulation asks for fp32
  // (going back would only move the same memory about), and when the model got more parameters.
  void hold(GradientWidth width);
  GradientWidth width() const { return memory_->width(); }
  GradientMemory& memory() { return *memory_; }
  LeafSum& sum() { return *sum_; }

  // Collective, after an exchange: the ranks decide, and what any of them has appears in .grad.
  // `arrived`: per parameter, did this rank have a gradient.
  void publish(std::vector<bool> arrived);
  const Decision& decision() const { return decision_; }
  // Collective when the program wrote to .grad since: decides again. The norm over all parameters.
  double norm();
  // Multiplies what .grad shows.
  void scale(float factor);

  // The parameters that have a gradient and are not frozen now. A .grad that the program replaced
  // is taken in.
  std::vector<Update> updates();
  // The mean gradient of a parameter, [its shape].
  const at::Tensor& view(std::size_t parameter) const;
  // Makes every .grad undefined.
  void clear_grads();

  std::int64_t bytes() const { return memory_->bytes() + sum_->bytes(); }

 private:
  bool was_touched() const;
  void recount_squares();
  void adopt_replaced(std::size_t parameter);

  Device& device_;
  Group& group_;
  const FlatModel& model_;
  Exchange& exchange_;
  std::unique_ptr<GradientMemory> memory_;
  std::unique_ptr<LeafSum> sum_;
  std::vector<bool> arrived_;
  Decision decision_;
  std::vector<std::uint32_t> versions_;  // of the gradients when they were published, per part
};

}  // namespace lockstep::parallel
