#include "train/batches.h"

#include <algorithm>

namespace lockstep::train {

Batch make_batch(const data::Windows& windows, std::span<const std::int64_t> chosen) {
  const auto count = static_cast<std::int64_t>(chosen.size());
  const std::int64_t length = windows.sequence() + 1;
  const torch::Tensor both = torch::empty({count, length}, torch::kInt64);  // [B, T+1]
  auto* row = both.mutable_data_ptr<std::int64_t>();
  for (const std::int64_t window : chosen) {
    windows.window(window).visit([&](auto ids) { row = std::ranges::copy(ids, row).out; });
  }
  return {both.narrow(1, 0, length - 1), both.narrow(1, 1, length - 1)};
}

}  // namespace lockstep::train
