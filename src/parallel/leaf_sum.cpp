#include "parallel/leaf_sum.h"

namespace lockstep::parallel {
namespace {

std::vector<Span> spans_of(const GradientMemory& gradients) {
  std::vector<Span> spans;
  for (std::size_t part = 0; part < gradients.parts(); ++part) {
    spans.push_back(gradients.span(part).local());
  }
  return spans;
}

}  // namespace

LeafSum::LeafSum(Device& device, const std::vector<FlatParameter*>& parts,
                 GradientMemory& gradients)
    : device_(device),
      parts_(parts),
      gradients_(gradients),
      partial_sums_(device, spans_of(gradients)) {}

void LeafSum::put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
                  const at::Tensor& gradient) {
  if (gradient.numel() == 0) {
    return;
  }
  if (order_ == LeafOrder::tree && gradients_.width() == GradientWidth::accumulating) {
    partial_sums_.add(part, parts_[part]->layout().member(member).begin, leaf, gradient);
  } else {
    put_running(gradients_.values(part, member), first, gradient);
  }
}

void LeafSum::put_running(optim::Vector sum, bool first, const at::Tensor& gradient) {
  if (gradient.const_data_ptr() == sum.data) {
    return;  // LibTorch added into our view of it
  }
  if (first) {
    device_.convert(sum, gradient);
  } else if (sum.dtype == Dtype::bf16 || sum.dtype == Dtype::f16) {
    // A second backward of the same leaf: in fp32 and rounded, as LibTorch adds into .grad.
    const at::Tensor held = torch::from_blob(sum.data, {gradient.numel()}, torch_dtype(sum.dtype));
    device_.host_follows_compute();
    device_.convert(sum, held.to(torch::kFloat32) + gradient.reshape({-1}).to(torch::kFloat32));
  } else {
    device_.accumulate(sum, gradient);
  }
}

void LeafSum::clear(std::size_t part, std::size_t member) {
  device_.clear(gradients_.values(part, member), parts_[part]->layout().member(member).size());
}

}  // namespace lockstep::parallel
