#include "parallel/partial_sums.h"

#include "parallel/flat_parameter.h"

#include <bit>

namespace lockstep::parallel {

void PartialSums::add(std::size_t part, std::int64_t element, std::int64_t leaf,
                      const at::Tensor& values) {
  const auto bits = static_cast<std::uint64_t>(leaf);
  // Leaves go in pairs: an even one opens a partial sum, the odd one joins it; one bits of leaf/2
  // are the partial sums that stand before.
  auto top = static_cast<std::size_t>(std::popcount(bits >> 1));
  if ((bits & 1) == 0) {
    device_.convert(at(part, element, top), values);
    return;
  }
  device_.accumulate(at(part, element, top), values);
  for (int merges = std::countr_one(bits) - 1; merges > 0; --merges, --top) {
    const optim::Vector right = at(part, element, top);
    device_.add(at(part, element, top - 1), {right.data, right.dtype}, values.numel());
  }
}

optim::Vector PartialSums::at(std::size_t part, std::int64_t element, std::size_t depth) {
  while (deeper_.size() < depth) {
    std::vector<at::Tensor>& sums = deeper_.emplace_back();
    for (const Span& end : ends_) {
      sums.push_back(flat_tensor(device_, end.count, end.dtype));
    }
  }
  const Span& end = ends_.at(part);
  void* const data = depth == 0 ? end.data : deeper_[depth - 1][part].mutable_data_ptr();
  return optim::Vector{data, end.dtype}.from(element);
}

std::int64_t PartialSums::bytes() const {
  std::int64_t bytes = 0;
  for (const Span& end : ends_) {
    bytes += end.bytes();
  }
  return bytes * static_cast<std::int64_t>(deeper_.size());
}

}  // namespace lockstep::parallel
