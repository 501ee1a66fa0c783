// Batch normalisation (Ioffe & Szegedy 2015) over the batches of all ranks together: modules that
// take the place of torch::nn::BatchNorm1d, 2d and 3d, with the same parameters, buffers and names.
//
//   auto norms = std::make_shared<lockstep::Group>(*world.split(0, world.rank()));
//   lockstep::SyncBatchNorm2d norm(torch::nn::BatchNormOptions(64), norms);
//
// In training, forward and backward are collective: on every rank the module sees the statistics of
// the whole batch, however it lies on the ranks, an empty batch included. So a rank without data
// still runs forward on a batch of 0 samples, and backward on a sum over what comes out (a mean
// over nothing is NaN). Running statistics end with the same bits on all ranks. Losses are each
// rank's own; input gradients are those of their sum over ranks.
//
// Statistics are counted and combined in fp64 (Chan, Golub & LeVeque 1979), 16-bit inputs
// normalised in fp32; what comes out has the input's dtype. In eval mode, and without running
// statistics there, it is LibTorch's BatchNorm. A second derivative is refused: UsageError from
// backward().
#pragma once

#include "lockstep/group.h"

#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace lockstep {

template <std::size_t dimensions, class Derived>
class SyncBatchNormImplBase
    : public torch::nn::NormImplBase<dimensions, Derived, torch::nn::BatchNormOptions> {
  using Base = torch::nn::NormImplBase<dimensions, Derived, torch::nn::BatchNormOptions>;

 public:
  // The layers of a model may share one group, which nothing else uses meanwhile; clones share it
  // too. Throws UsageError without a group.
  SyncBatchNormImplBase(const torch::nn::BatchNormOptions& batch_norm,
                        std::shared_ptr<Group> group);

  // input: [samples, features, …] → the same shape. Throws UsageError on every rank when all of
  // them together have fewer than two values per feature.
  torch::Tensor forward(const torch::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

  // Takes over the parameters and running statistics of a module with the same options: the same
  // tensors, so optimizers and ties keep holding.
  template <class BatchNorm>
  void adopt(const BatchNorm& other) {
    this->parameters_["weight"] = this->weight = other.weight;
    this->parameters_["bias"] = this->bias = other.bias;
    adopt_buffers(other.running_mean, other.running_var, other.num_batches_tracked);
  }

 protected:
  void _check_input_dim(const torch::Tensor& input) override;

 private:
  void adopt_buffers(const torch::Tensor& mean, const torch::Tensor& var,
                     const torch::Tensor& batches);

  std::shared_ptr<Group> group_;
};

class SyncBatchNorm1dImpl : public SyncBatchNormImplBase<1, SyncBatchNorm1dImpl> {
 public:
  using SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>::SyncBatchNormImplBase;
};
class SyncBatchNorm2dImpl : public SyncBatchNormImplBase<2, SyncBatchNorm2dImpl> {
 public:
  using SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>::SyncBatchNormImplBase;
};
class SyncBatchNorm3dImpl : public SyncBatchNormImplBase<3, SyncBatchNorm3dImpl> {
 public:
  using SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>::SyncBatchNormImplBase;
};
TORCH_MODULE(SyncBatchNorm1d);
TORCH_MODULE(SyncBatchNorm2d);
TORCH_MODULE(SyncBatchNorm3d);

// Replaces every torch::nn::BatchNorm inside a Sequential, at any depth of `module`, and says how
// many it replaced. C++ has no way to replace one that is a member of a class of its own, as the
// member keeps its type: such a module is a UsageError that names them all, before anything has
// changed; declare those members as SyncBatchNorm. `module` is owned by a holder or shared pointer.
std::int64_t convert_sync_batch_norm(torch::nn::Module& module,
                                     const std::shared_ptr<Group>& group);
template <class Module>
std::int64_t convert_sync_batch_norm(torch::nn::ModuleHolder<Module>& module,
                                     const std::shared_ptr<Group>& group) {
  return convert_sync_batch_norm(static_cast<torch::nn::Module&>(*module), group);
}

}  // namespace lockstep
