#include "parallel/gradient_memory.h"

namespace lockstep::parallel {

Dtype gradient_dtype(Dtype held, GradientWidth width) {
  const bool narrow = held == Dtype::bf16 || held == Dtype::f16;
  return narrow && width == GradientWidth::accumulating ? Dtype::f32 : held;
}

GradientMemory::GradientMemory(Group& group, const std::vector<FlatParameter*>& parts,
                               GradientWidth width)
    : width_(width), parts_(parts.begin(), parts.end()) {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
  for (const FlatParameter* part : parts_) {
    offsets.push_back(bytes);  // every part is a multiple of 64 elements, so offsets stay aligned
    bytes += part->layout().size() * size_of(gradient_dtype(part->dtype(), width));
  }
  memory_ = group.allocate_symmetric(bytes, "gradients");
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const FlatLayout& layout = parts_[p]->layout();
    const Dtype dtype = gradient_dtype(parts_[p]->dtype(), width);
    spans_.push_back(memory_.span(offsets[p], layout.size(), dtype));
    flats_.push_back(torch::from_blob(
        spans_[p].data(), {layout.size()}, [keep = memory_](void*) {}, torch_dtype(dtype)));
    std::vector<at::Tensor>& views = views_.emplace_back();
    for (std::size_t i = 0; i < layout.members(); ++i) {
      const Range range = layout.member(i);
      views.push_back(
          flats_[p].narrow(0, range.begin, range.size()).view(parts_[p]->member(i).tensor.sizes()));
    }
  }
}

optim::Vector GradientMemory::values(std::size_t part, std::size_t member) const {
  const SymmetricSpan& whole = spans_.at(part);
  return optim::Vector{whole.data(), whole.dtype}.from(
      parts_.at(part)->layout().member(member).begin);
}

}  // namespace lockstep::parallel
