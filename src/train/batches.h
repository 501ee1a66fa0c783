// Windows of tokens as tensors.
#pragma once

#include "data/windows.h"

#include <torch/torch.h>

#include <cstdint>
#include <span>

namespace lockstep::train {

struct Batch {
  torch::Tensor tokens;   // i64 [B, T]
  torch::Tensor targets;  // i64 [B, T]: the token that follows each
};

Batch make_batch(const data::Windows& windows, std::span<const std::int64_t> chosen);

}  // namespace lockstep::train
