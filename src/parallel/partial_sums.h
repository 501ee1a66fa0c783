// The partial sums of a summation tree over leaves that come one after the other. The first rests
// where the sum is to end; the deeper ones, log2 k − 1 of them, in memory of their own, made when a
// step first needs it.
#pragma once

#include "parallel/device.h"

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::parallel {

class PartialSums {
 public:
  // `ends`: per flat parameter, where its sum ends. It and the device must outlive this.
  PartialSums(Device& device, std::vector<Span> ends) : device_(device), ends_(std::move(ends)) {}

  // Adds leaf `leaf` (from 0, all in order) to the elements of a flat parameter from `element` on.
  void add(std::size_t part, std::int64_t element, std::int64_t leaf, const at::Tensor& values);

  // Beyond where the sums end.
  std::int64_t bytes() const;

 private:
  optim::Vector at(std::size_t part, std::int64_t element, std::size_t depth);

  Device& device_;
  std::vector<Span> ends_;
  std::vector<std::vector<at::Tensor>> deeper_;  // [depth − 1][part], as long as the ends
};

}  // namespace lockstep::parallel
