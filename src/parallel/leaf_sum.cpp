#include "parallel/leaf_sum.h"

namespace lockstep::parallel {

LeafSum::LeafSum(Device& device, const std::vector<FlatParameter*>& parts,
                 GradientMemory& gradients)
    : device_(device), parts_(parts), gradients_(gradients) {}

void LeafSum::put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
                  const at::Tensor& gradient) {
  if (gradient.numel() == 0) {
    return;
  }
  if (order_ == LeafOrder::tree && gradients_.width() == GradientWidth::accumulating) {
    put_in_tree(part, member, leaf, gradient);
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

void LeafSum::put_in_tree(std::size_t part, std::size_t member, std::int64_t leaf,
                          const at::Tensor& gradient) {
  add_leaf_in_tree(
      leaf, [&](std::size_t depth) { device_.convert(partial(part, member, depth), gradient); },
      [&](std::size_t depth) { device_.accumulate(partial(part, member, depth), gradient); },
      [&](std::size_t depth) {
        const optim::Vector right = partial(part, member, depth);
        device_.add(partial(part, member, depth - 1), {right.data, right.dtype}, gradient.numel());
      });
}

void LeafSum::clear(std::size_t part, std::size_t member) {
  device_.clear(gradients_.values(part, member), parts_[part]->layout().member(member).size());
}

optim::Vector LeafSum::partial(std::size_t part, std::size_t member, std::size_t depth) {
  if (depth == 0) {
    return gradients_.values(part, member);
  }
  const Dtype dtype = gradients_.span(part).dtype;
  while (deeper_.size() < depth) {
    std::vector<at::Tensor>& flats = deeper_.emplace_back();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      flats.push_back(flat_tensor(device_, parts_[p]->layout().size(), gradients_.span(p).dtype));
    }
  }
  auto* bytes = static_cast<std::byte*>(deeper_[depth - 1][part].mutable_data_ptr());
  return {bytes + parts_[part]->layout().member(member).begin * size_of(dtype), dtype};
}

std::int64_t LeafSum::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& flats : deeper_) {
    for (const at::Tensor& flat : flats) {
      bytes += flat.numel() * flat.element_size();
    }
  }
  return bytes;
}

}  // namespace lockstep::parallel
