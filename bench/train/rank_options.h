// What one launch of a training bench does on each rank; the words that the driver gives to it.
#pragma once

#include "bench/train/modes.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {

struct RankOptions {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  // Or apart: every rank trains alone, meeting the others at barriers; or threads: one rank trains
  // on the batches of `batches` ranks.
  std::string stage = "ddp";
  std::string model = "gpt2-124m";
  std::string precision = "f32";  // or bf16
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t sequence = 128;    // tokens
  std::int64_t steps = 6;
  int threads = 1;
  std::int64_t batches = 1;
  Dials dials;
  std::string result;  // file that rank 0 writes
};

// Throws UsageError.
RankOptions parse_rank(std::span<const std::string> words);

// The words that parse_rank() reads back. Peers take them too, but for `batches` and the dials,
// which are left out at their defaults.
std::vector<std::string> words_of(const RankOptions& options);

}  // namespace lockstep::bench
