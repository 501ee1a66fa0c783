// A flat parameter: the parameters of one dtype of a bucket laid end to end in one storage, of
// which the module's tensors are views.
#pragma once

#include "base/flat_layout.h"
#include "parallel/device.h"

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::parallel {

// One trainable parameter of the module.
struct NamedParameter {
  std::string name;
  at::Tensor tensor;     // the module's own tensor (shared handle)
  torch::Dtype held_as;  // the dtype that the precision asks for
};

// Where a trained parameter lies: a flat parameter's number, and its own among the members.
struct Place {
  std::size_t part;
  std::size_t member;
};

class FlatParameter {
 public:
  // Copies the members' values into flat memory, in fp32 (fp64 for fp64); call after_broadcast()
  // next. All members are held as the same dtype.
  FlatParameter(Device& device, std::vector<NamedParameter> members, int ranks);

  // The values as they were initialised, for the broadcast at start: f32 or f64, the padding
  // included.
  Span initial_values();
  // Rounds them into the dtype members are held in and points the members at the result.
  void attach_members(Device& device);

  Dtype dtype() const { return dtype_; }
  const FlatLayout& layout() const { return layout_; }
  std::size_t members() const { return members_.size(); }
  const NamedParameter& member(std::size_t i) const { return members_.at(i); }

  // The member's values as held, and in full precision (the fp32 master where there is one).
  optim::Vector values(std::size_t i) const;
  float* master(std::size_t i) const;
  at::Tensor full_precision(std::size_t i) const;
  // Rounds the member's master, where there is one, into its values.
  void round_master(Device& device, std::size_t i) const;
  // Sets a member in full precision, and what is held to its rounding; a graph that was kept over
  // this is LibTorch's error.
  void set_full_precision(std::size_t i, const at::Tensor& values, Device& device);
  // Which member this tensor is, if any.
  std::optional<std::size_t> find(const at::Tensor& tensor) const;

  // Throws UsageError naming a member whose storage was replaced since it was attached.
  void check_attached() const;

  std::int64_t parameter_bytes() const { return layout_.size() * size_of(dtype_); }
  std::int64_t master_bytes() const {
    return has_master() ? layout_.size() * size_of(Dtype::f32) : 0;
  }

 private:
  bool has_master() const { return dtype_ == Dtype::bf16 || dtype_ == Dtype::f16; }

  std::vector<NamedParameter> members_;
  Dtype dtype_;
  FlatLayout layout_;
  at::Tensor flat_;    // [layout.size()] of dtype
  at::Tensor master_;  // [layout.size()] f32 with a 16-bit dtype, else undefined
};

// A 1-D tensor over device memory that it owns.
at::Tensor flat_tensor(Device& device, std::int64_t count, Dtype dtype);

}  // namespace lockstep::parallel
