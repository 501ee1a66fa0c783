#include "lockstep/data.h"

#include <array>
#include <span>
#include <utility>

namespace lockstep {

Average::Average(Group& group, std::string name) : group_(group), name_(std::move(name)) {}

Average& Average::add(double sum, std::int64_t count) {
  if (count < 0) {
    throw UsageError("Average '" + name_ + "': expected a count ≥ 0, got " + std::to_string(count));
  }
  sum_ += sum;
  count_ += count;
  return *this;
}

Average& Average::add(const torch::Tensor& values) {
  return add(values.detach().sum(torch::kFloat64).item<double>(), values.numel());
}

double Average::result() {
  std::array<double, 2> totals{std::exchange(sum_, 0.0),
                               static_cast<double>(std::exchange(count_, 0))};
  group_.all_reduce(std::span(totals), {.name = name_}).wait();
  if (totals[1] == 0) {
    throw UsageError("Average '" + name_ +
                     "': no rank has added a value since the last result, so there is no mean; "
                     "check that the data is not empty");
  }
  return totals[0] / totals[1];
}

}  // namespace lockstep
