// What `lockstep bench train` was asked to measure.
#pragma once

#include "bench/train/modes.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {

struct TrainQuestion {
  int ranks = 2;
  int threads = 1;  // of each rank
  std::string model = "gpt2-124m";
  std::string precision = "f32";
  std::int64_t micro_batch = 1;  // sequences of a rank
  std::int64_t sequence = 128;   // tokens
  std::vector<Mode> modes = modes_named({"apart", "ddp"});
  std::int64_t rounds = 5;  // each launches every mode once
  std::int64_t steps = 6;   // of a launch; the first one is not counted
  std::string python;       // the interpreter that has torch, and deepspeed where it is asked for
};

struct TrainBenchOptions {
  std::string print;  // what --help or --version wants printed; the rest means nothing then
  TrainQuestion question;
  std::vector<Mode> peers;  // of --peers: asked for as far as the interpreter has their packages
  bool json = false;
  std::string plot;  // file; empty: none
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
