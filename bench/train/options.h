// What `lockstep bench train` was asked to measure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {

// What PyTorch's own program is listed as: every rank alone, as apart, with torch.nn. As users run
// it, and with the malloc settings of our ranks, which make it faster.
inline constexpr const char* kPyTorch = "pytorch-none";
inline constexpr const char* kPyTorchTuned = "pytorch-none-malloc";

// Every rank alone, and the stages that `bench train` times.
inline constexpr std::array kTimedStages{"apart", "ddp", "zero1", "zero2", "zero3"};

struct TrainQuestion {
  int ranks = 2;
  int threads = 1;  // of each rank
  std::string model = "gpt2-124m";
  std::string precision = "f32";
  std::int64_t micro_batch = 1;                     // sequences
  std::int64_t sequence = 128;                      // tokens
  std::vector<std::string> stages{"apart", "ddp"};  // of kTimedStages and PyTorch's
  std::int64_t rounds = 5;                          // each launches every stage once
  std::int64_t steps = 6;                           // of a launch; the first one is not counted
  std::string python;                               // the interpreter that has torch
};

struct TrainBenchOptions {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  TrainQuestion question;
  bool json = false;
};

// Throws UsageError.
TrainBenchOptions parse_train_bench(std::span<const std::string> words);

// The interpreter of the wheel that set-up installs.
std::string default_python();

// Throws UsageError naming the fix unless `python` can be run.
void check_python(const std::string& python);

// "gpt2-124m f32 1x128".
std::string title(const TrainQuestion& question);

}  // namespace lockstep::bench
