// The module's buffers over a step: what its leaves start from, and what the step leaves behind on
// every rank. BufferPolicy (lockstep/parallel.h) has the contract.
#pragma once

#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "parallel/leaf_sum.h"

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace lockstep::parallel {

class Buffers {
 public:
  // `module` must not replace its buffers. All references must outlive this.
  Buffers(const torch::nn::Module& module, Group& group, BufferPolicy policy);

  // A step of k leaves on this rank follows; each starts from the values the buffers have now.
  void begin_step(std::int64_t k, LeafOrder order);
  // The forward and backward passes of the next of the k leaves have ended.
  void end_leaf();
  // Collective, also where no begin_step() went before: then the values of now are the only leaf's.
  void exchange();
  // Gives the buffers back the values that the step began with.
  void abandon();

 private:
  struct Partial {
    std::int64_t leaves;
    at::Tensor sum;  // [elements of all averaged buffers] f64
  };

  at::Tensor averaged_values() const;
  void add(at::Tensor leaf);
  void average();
  void broadcast();
  void write_averaged(const at::Tensor& values);

  Group& group_;
  std::vector<at::Tensor> averaged_;  // floating-point ones, under the average policy
  std::vector<at::Tensor> copied_;    // rank 0's

  std::int64_t k_ = 1;
  std::int64_t ended_ = 0;  // leaves
  LeafOrder order_ = LeafOrder::running;
  std::vector<at::Tensor> first_averaged_;  // the values that leaves start from, while k > 1
  std::vector<at::Tensor> first_copied_;
  std::vector<at::Tensor> kept_;   // copied_ after the first leaf, while k > 1
  std::vector<Partial> partials_;  // sums of averaged_, while k > 1
};

}  // namespace lockstep::parallel
