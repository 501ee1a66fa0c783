// A module whose trainable parameters lie in flat memory, bucket by bucket, with the same values on
// all ranks.
#pragma once

#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "parallel/collector.h"
#include "parallel/device.h"
#include "parallel/flat_parameter.h"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::parallel {

class FlatModel {
 public:
  // Collective. Verifies that all ranks have the same parameters, plans the buckets, broadcasts
  // rank 0's values and buffers, and points the module's tensors into flat memory.
  FlatModel(std::shared_ptr<torch::nn::Module> module, Group& group, const ParallelOptions& options,
            Device& device);

  const std::vector<FlatParameter*>& parts() const { return parts_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // All trainable parameters, through parts and members in order.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }

  // The fp32 (fp64) value of any parameter, frozen ones included. Throws UsageError for an unknown
  // name.
  at::Tensor full_precision(const std::string& name) const;
  // Sets it; what the module holds is the values' rounding. Throws UsageError for an unknown name
  // or another shape.
  void set_full_precision(const std::string& name, const at::Tensor& values, Device& device);
  torch::nn::Module& module() const { return *module_; }
  void check_attached() const;

  std::int64_t parameter_bytes() const;  // frozen ones included
  std::int64_t master_bytes() const;

 private:
  void plan(std::vector<NamedParameter> parameters, const ParallelOptions& options, int ranks,
            Device& device);
  void broadcast(Group& group);
  at::Tensor parameter(const std::string& name) const;

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<std::unique_ptr<FlatParameter>> owned_;
  std::vector<FlatParameter*> parts_;
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace lockstep::parallel
