#include "parallel/shard_sums.h"

namespace lockstep::parallel {

ShardSums::ShardSums(Device& device, const std::vector<FlatParameter*>& parts, GradientWidth width)
    : device_(device), parts_(parts), width_(width) {
  for (const FlatParameter* part : parts_) {
    sums_.push_back(
        flat_tensor(device_, part->kept().size(), gradient_dtype(part->dtype(), width)));
  }
}

Span ShardSums::shard(std::size_t part) const {
  const at::Tensor& sum = sums_.at(part);
  return {sum.mutable_data_ptr(), sum.numel(), dtype_of(sum.scalar_type())};
}

optim::Vector ShardSums::at(std::size_t part, std::int64_t element) const {
  const Span shard = this->shard(part);
  const std::int64_t offset = element - parts_.at(part)->kept().begin;
  return {static_cast<std::byte*>(shard.data) + offset * size_of(shard.dtype), shard.dtype};
}

at::Tensor ShardSums::kept(std::size_t part, std::size_t member) const {
  const FlatParameter& flat = *parts_.at(part);
  return sums_.at(part).narrow(0, flat.kept_offset(member), flat.kept(member).size());
}

void ShardSums::add(std::size_t part, std::int64_t element, std::int64_t count, const void* values,
                    std::int64_t leaf, LeafOrder order) {
  const optim::ConstVector summand{values, shard(part).dtype};
  const auto put = [&](std::size_t depth) {
    const at::Tensor source =
        torch::from_blob(const_cast<void*>(values), {count}, torch_dtype(summand.dtype));
    device_.convert(partial(part, element, depth), source);
  };
  const auto join = [&](std::size_t depth) {
    device_.add(partial(part, element, depth), summand, count);
  };
  if (order == LeafOrder::running) {
    leaf == 0 ? put(0) : join(0);
  } else {
    add_leaf_in_tree(leaf, put, join, [&](std::size_t depth) {
      const optim::Vector right = partial(part, element, depth);
      device_.add(partial(part, element, depth - 1), {right.data, right.dtype}, count);
    });
  }
  device_.host_follows_compute();
}

optim::Vector ShardSums::partial(std::size_t part, std::int64_t element, std::size_t depth) {
  if (depth == 0) {
    return at(part, element);
  }
  while (deeper_.size() < depth) {
    std::vector<at::Tensor>& sums = deeper_.emplace_back();
    for (const at::Tensor& sum : sums_) {
      sums.push_back(flat_tensor(device_, sum.numel(), dtype_of(sum.scalar_type())));
    }
  }
  const std::int64_t offset = element - parts_.at(part)->kept().begin;
  const Dtype dtype = shard(part).dtype;
  auto* bytes = static_cast<std::byte*>(deeper_[depth - 1][part].mutable_data_ptr());
  return {bytes + offset * size_of(dtype), dtype};
}

std::int64_t ShardSums::bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& sum : sums_) {
    bytes += static_cast<std::int64_t>(sum.nbytes());
  }
  return bytes * static_cast<std::int64_t>(1 + deeper_.size());
}

}  // namespace lockstep::parallel
