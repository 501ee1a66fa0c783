// What forward keeps for backward, in GPT-2 and Llama models as src/models computes them, without
// dropout. Derived operation by operation, as Korthikanti et al. 2022 ("Reducing Activation
// Recomputation in Large Transformer Models", section 4.1) do for 16 bits: their 34·C per token and
// layer are our 16 elements of C, 2 bytes each, and two dropout masks.
//
// Elements per token and block (C width, Q = heads × head size, F hidden, H heads, T tokens):
//   GPT-2   C into the first norm, C out of it, 3C queries keys values, C attended, C into the
//           second norm, C out of it, 4C into GELU, 4C out of it               16 C
//   Llama   C and C around each norm, 3Q rotated and repeated for each query, Q attended, F gate,
//           F of SiLU, F up, F their product                                    4 C + 4 Q + 4 F
// plus, in fp32, the norms' statistics and one sum per head, or without flash attention (Dao et al.
// 2022) H·T softmax weights in the run's precision. Behind the blocks: C and C around the last
// norm, and for the loss 3 fp32 values per row of the vocabulary (log-softmax, its gradient, that
// of the logits). With recomputation a block keeps its input alone, and one block is whole.
// Pure.
#pragma once

#include "plan/dials.h"

#include <cstdint>

namespace lockstep::plan {

enum class Family : std::uint8_t { gpt2, llama };

struct Transformer {
  Family family = Family::gpt2;
  std::int64_t layers = 0;
  std::int64_t width = 0;       // C
  std::int64_t heads = 0;       // H
  std::int64_t head_size = 0;   // Q = H × this
  std::int64_t hidden = 0;      // F
  std::int64_t vocabulary = 0;  // V
  std::int64_t context = 0;     // most tokens of a sequence
};

struct Activations {
  std::int64_t block = 0;  // one block, whole
  std::int64_t kept = 0;   // all blocks at the end of forward
  std::int64_t head = 0;   // final norm, logits and loss
  std::int64_t peak = 0;   // most at once
};

// Bytes of one rank for one micro-batch. Throws UsageError when they do not fit into 63 bits.
Activations activations_of(const Transformer& model, const Dials& dials);

}  // namespace lockstep::plan
