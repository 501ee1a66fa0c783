#include "parallel/shard_sums.h"

namespace lockstep::parallel {

ShardSums::ShardSums(Device& device, const std::vector<FlatParameter*>& parts, GradientWidth width)
    : device_(device),
      parts_(parts),
      width_(width),
      sums_(make_sums()),
      partial_sums_(device, shards()) {}

std::vector<at::Tensor> ShardSums::make_sums() const {
  std::vector<at::Tensor> sums;
  for (const FlatParameter* part : parts_) {
    sums.push_back(
        flat_tensor(device_, part->kept().size(), gradient_dtype(part->dtype(), width_)));
  }
  return sums;
}

std::vector<Span> ShardSums::shards() const {
  std::vector<Span> shards;
  for (std::size_t part = 0; part < parts(); ++part) {
    shards.push_back(shard(part));
  }
  return shards;
}

Span ShardSums::shard(std::size_t part) const {
  const at::Tensor& sum = sums_.at(part);
  return {sum.mutable_data_ptr(), sum.numel(), dtype_of(sum.scalar_type())};
}

optim::Vector ShardSums::at(std::size_t part, std::int64_t element) const {
  const Span shard = this->shard(part);
  return optim::Vector{shard.data, shard.dtype}.from(element - parts_.at(part)->kept().begin);
}

at::Tensor ShardSums::kept(std::size_t part, std::size_t member) const {
  const FlatParameter& flat = *parts_.at(part);
  return sums_.at(part).narrow(0, flat.kept_offset(member), flat.kept(member).size());
}

void ShardSums::add(std::size_t part, std::int64_t element, std::int64_t count, const void* values,
                    std::int64_t leaf, LeafOrder order) {
  const at::Tensor leaf_values =
      torch::from_blob(const_cast<void*>(values), {count}, sums_.at(part).scalar_type());
  if (order == LeafOrder::tree) {
    partial_sums_.add(part, element - parts_.at(part)->kept().begin, leaf, leaf_values);
  } else if (leaf == 0) {
    device_.convert(at(part, element), leaf_values);
  } else {
    device_.accumulate(at(part, element), leaf_values);
  }
  device_.host_follows_compute();
}

std::int64_t ShardSums::bytes() const {
  std::int64_t bytes = partial_sums_.bytes();
  for (const at::Tensor& sum : sums_) {
    bytes += static_cast<std::int64_t>(sum.nbytes());
  }
  return bytes;
}

}  // namespace lockstep::parallel
