// A stand-in for MNIST of its size and kind, made rather than downloaded: images of ten classes,
// each class a pattern of its own, shifted and noisy.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>

namespace mnist {

inline constexpr std::int64_t kSide = 28;
inline constexpr std::int64_t kClasses = 10;

class Digits : public torch::data::datasets::Dataset<Digits> {
 public:
  // Image `first` and the `count` − 1 behind it, of an endless sequence that is always the same.
  Digits(std::int64_t first, std::int64_t count) : first_(first), count_(count) {
    const torch::Tensor coarse =
        torch::randn({kClasses, 7, 7}, at::detail::createCPUGenerator(/*seed=*/1));
    patterns_ = coarse.repeat_interleave(4, 1).repeat_interleave(4, 2);
  }
  // data [1, 28, 28], target [] of int64.
  torch::data::Example<> get(std::size_t index) override {
    const std::int64_t number = first_ + static_cast<std::int64_t>(index);
    auto random = at::detail::createCPUGenerator(static_cast<std::uint64_t>(number + 2));
    const auto shift = torch::randint(-2, 3, {2}, random, torch::kInt64);
    const torch::Tensor moved = patterns_[number % kClasses].roll(
        {shift[0].item<std::int64_t>(), shift[1].item<std::int64_t>()}, {0, 1});
    const torch::Tensor noise = 0.5 * torch::randn({kSide, kSide}, random);
    return {(moved + noise).unsqueeze(0), torch::tensor(number % kClasses)};
  }
  std::optional<std::size_t> size() const override { return count_; }

 private:
  std::int64_t first_;
  std::int64_t count_;
  torch::Tensor patterns_;  // [classes, 28, 28]
};

}  // namespace mnist
