#include "parallel/buffers.h"

#include "base/invariant.h"

#include <utility>

namespace lockstep::parallel {
namespace {

std::vector<at::Tensor> clones_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> clones;
  for (const at::Tensor& tensor : tensors) {
    clones.push_back(tensor.detach().clone());
  }
  return clones;
}

// Without moving the version counter: a graph that saved the buffer may still run backward, and
// LibTorch's own batch norm does not move it either.
void write(const at::Tensor& buffer, const at::Tensor& values) {
  buffer.variable_data().copy_(values);
}

void write(const std::vector<at::Tensor>& buffers, const std::vector<at::Tensor>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    write(buffers.at(i), values[i]);
  }
}

// [elements of all, end to end] f64
at::Tensor flat_f64(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) {
    flat.push_back(tensor.detach().to(torch::kFloat64).reshape({-1}));
  }
  return torch::cat(flat);
}

// [bytes of all, end to end] u8
at::Tensor bytes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> bytes;
  for (const at::Tensor& tensor : tensors) {
    bytes.push_back(tensor.detach().contiguous().reshape({-1}).view(torch::kUInt8));
  }
  return torch::cat(bytes);
}

}  // namespace

Buffers::Buffers(const torch::nn::Module& module, Group& group, BufferPolicy policy)
    : group_(group) {
  for (const at::Tensor& buffer : module.buffers()) {
    if (!buffer.defined() || buffer.numel() == 0) {
      continue;
    }
    const bool averages = policy == BufferPolicy::average && buffer.is_floating_point();
    (averages ? averaged_ : copied_).push_back(buffer);
  }
}

void Buffers::begin_step(std::int64_t k, LeafOrder order) {
  k_ = k;
  ended_ = 0;
  order_ = order;
  partials_.clear();
  kept_.clear();
  first_averaged_.clear();
  first_copied_.clear();
  if (k_ > 1) {
    first_averaged_ = clones_of(averaged_);
    first_copied_ = clones_of(copied_);
  }
}

void Buffers::end_leaf() {
  ++ended_;
  if (k_ == 1) {
    return;
  }
  const torch::NoGradGuard no_grad;
  if (ended_ == 1) {
    kept_ = clones_of(copied_);
  }
  if (!averaged_.empty()) {
    add(averaged_values());
  }
  if (ended_ < k_) {
    write(averaged_, first_averaged_);
    write(copied_, first_copied_);
  }
}

at::Tensor Buffers::averaged_values() const { return flat_f64(averaged_); }

// As the gradient's leaves are added (leaf_sum.h).
void Buffers::add(at::Tensor leaf) {
  partials_.push_back({1, std::move(leaf)});
  while (partials_.size() > 1) {
    const Partial& left = partials_[partials_.size() - 2];
    const Partial& right = partials_.back();
    if (order_ == LeafOrder::tree && left.leaves != right.leaves) {
      return;
    }
    Partial merged{left.leaves + right.leaves, left.sum + right.sum};
    partials_.pop_back();
    partials_.back() = std::move(merged);
  }
}

void Buffers::exchange() {
  const torch::NoGradGuard no_grad;
  if (!averaged_.empty()) {
    average();
  }
  if (!copied_.empty()) {
    broadcast();
  }
  begin_step(1, LeafOrder::running);
}

void Buffers::average() {
  if (group_.size() == 1 && k_ == 1) {
    return;
  }
  if (partials_.empty()) {
    add(averaged_values());
  }
  LOCKSTEP_INVARIANT(partials_.size(), ==, 1u);
  const at::Tensor sum = partials_.front().sum;
  const double leaves = static_cast<double>(partials_.front().leaves * group_.size());
  group_
      .all_reduce(Span(sum.mutable_data_ptr(), sum.numel(), Dtype::f64),
                  {.op = ReduceOp::sum, .name = "buffers", .scale = 1.0 / leaves})
      .wait();
  write_averaged(sum);
}

void Buffers::write_averaged(const at::Tensor& values) {
  std::int64_t begin = 0;
  for (const at::Tensor& buffer : averaged_) {
    write(buffer, values.narrow(0, begin, buffer.numel()).view(buffer.sizes()));
    begin += buffer.numel();
  }
}

void Buffers::broadcast() {
  write(copied_, kept_);
  if (group_.size() == 1) {
    return;
  }
  const at::Tensor bytes = bytes_of(copied_);
  group_.broadcast(Span(bytes.mutable_data_ptr(), bytes.numel(), Dtype::u8), 0, {.name = "buffers"})
      .wait();
  std::int64_t begin = 0;
  for (const at::Tensor& buffer : copied_) {
    const std::int64_t size = static_cast<std::int64_t>(buffer.nbytes());
    const at::Tensor own = bytes.narrow(0, begin, size).clone();  // aligned for any type
    write(buffer, own.view(buffer.scalar_type()).view(buffer.sizes()));
    begin += size;
  }
}

void Buffers::abandon() {
  const torch::NoGradGuard no_grad;
  write(averaged_, first_averaged_);
  write(copied_, first_copied_);
  begin_step(1, LeafOrder::running);
}

}  // namespace lockstep::parallel
