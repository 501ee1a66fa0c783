#include "plan/activations.h"

#include "lockstep/error.h"

#include <algorithm>
#include <string>

namespace lockstep::plan {
namespace {

constexpr std::int64_t kF32 = 4;

// Per token.
struct TokenBytes {
  std::int64_t block = 0;
  std::int64_t input = 0;      // of a block
  std::int64_t gradients = 0;  // at the widest place of a block's backward
  std::int64_t head = 0;       // kept behind the blocks
  std::int64_t loss = 0;       // while backward begins
};

TokenBytes token_bytes(const Transformer& model, const Dials& dials) {
  const std::int64_t size = dials.precision == Precision::bf16 ? 2 : kF32;
  const bool gpt2 = model.family == Family::gpt2;
  const std::int64_t queries = model.heads * model.head_size;
  const std::int64_t statistics = gpt2 ? 2 * kF32 : kF32;  // of one norm: mean and deviation
  const std::int64_t attention =
      dials.flash_attention ? model.heads * kF32 : model.heads * dials.sequence * size;
  const std::int64_t elements = gpt2 ? 4 * model.width + 4 * queries + 2 * model.hidden
                                     : 4 * model.width + 4 * queries + 4 * model.hidden;
  TokenBytes bytes;
  bytes.block = elements * size + attention + 2 * statistics;
  bytes.input = model.width * size;
  bytes.gradients = ((gpt2 ? 2 : 3) * model.hidden + model.width) * size;
  bytes.head = 2 * model.width * size + statistics;
  bytes.loss = 3 * model.vocabulary * kF32;
  return bytes;
}

void check_range(const Transformer& model, const Dials& dials, const TokenBytes& bytes) {
  const double tokens =
      static_cast<double>(dials.micro_batch) * static_cast<double>(dials.sequence);
  const double all = tokens * (static_cast<double>(model.layers + 1) *
                                   static_cast<double>(bytes.block + bytes.gradients) +
                               static_cast<double>(bytes.head + bytes.loss));
  if (all > 4e18) {
    throw UsageError("--micro-batch " + std::to_string(dials.micro_batch) + ", --seq " +
                     std::to_string(dials.sequence) +
                     ": more bytes of activations than can be counted; lower one of them");
  }
}

}  // namespace

Activations activations_of(const Transformer& model, const Dials& dials) {
  const TokenBytes bytes = token_bytes(model, dials);
  check_range(model, dials, bytes);
  const std::int64_t tokens = dials.micro_batch * dials.sequence;
  Activations result;
  result.block = tokens * bytes.block;
  result.kept = tokens * model.layers * (dials.recompute ? bytes.input : bytes.block);
  result.head = tokens * (bytes.head + bytes.loss);
  const std::int64_t in_block =
      tokens * bytes.gradients + (dials.recompute ? result.block : std::int64_t{0});
  result.peak = result.kept + std::max(result.head, in_block);
  return result;
}

}  // namespace lockstep::plan
