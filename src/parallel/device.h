// The device seam: whatever differs between CPU tensors and a GPU goes through here, and buckets,
// stages and the engine are written against it only.
//
// A device runs kernels in the order they are queued, possibly later than the call. The two
// ordering calls say where that order must meet communication; an engine that forgets one of them
// reads or sends stale bytes (tests/parallel has a device that makes sure it would show).
// One thread uses a device at a time.
#pragma once

#include "lockstep/group.h"
#include "optim/kernels.h"
#include "optim/norm.h"
#include "optim/sgd.h"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace lockstep::parallel {

class Device {
 public:
  virtual ~Device() = default;

  // Zeroed memory for flat parameters and optimizer state, aligned to 64 bytes; freed with the last
  // storage that holds it. Throws SystemError when there is none.
  virtual c10::DataPtr allocate(std::int64_t bytes) = 0;

  // Kernels (optim/kernels.h). `source` is kept alive until the kernel has run.
  virtual void convert(optim::Vector destination, const at::Tensor& source) = 0;
  virtual void accumulate(optim::Vector sum, const at::Tensor& source) = 0;
  virtual void add(optim::Vector sum, optim::ConstVector other, std::int64_t count) = 0;
  virtual void clear(optim::Vector values, std::int64_t count) = 0;
  virtual void scale(optim::Vector values, double factor, std::optional<Dtype> round_to,
                     std::int64_t count) = 0;
  virtual void add_squares(optim::SquareSum& sum, optim::ConstVector values,
                           std::int64_t count) = 0;
  virtual void adamw(const optim::AdamWVectors& vectors, const optim::AdamWStep& step,
                     std::int64_t count) = 0;
  virtual void sgd(const optim::SgdVectors& vectors, const optim::SgdStep& step,
                   std::int64_t count) = 0;

  // Asked before a Work is issued or given more: it will see all that was queued until now.
  virtual void communication_follows_compute() = 0;
  // Asked for each Work before anything that reads its output is queued. Waits as far as the device
  // needs (on a CPU: entirely); throws what Work::wait() throws.
  virtual void compute_follows(Work& work) = 0;
  // Asked before the host reads what kernels wrote (norms, the weights' hash).
  virtual void host_follows_compute() = 0;
};

std::unique_ptr<Device> make_cpu_device();

// Torch's dtype as ours. Throws UsageError for one that flat parameters can't hold.
Dtype dtype_of(torch::Dtype dtype);
torch::Dtype torch_dtype(Dtype dtype);

}  // namespace lockstep::parallel
