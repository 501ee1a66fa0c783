// The promises in numbers, and whether values keep them.
#pragma once

#include "bench/acceptance/memory.h"
#include "bench/common/statistics.h"
#include "bench/train/options.h"
#include "bench/train/session.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

struct Bound {
  std::string text;  // "gpt2-124m f32 1x128: ddp / apart"
  double least = 0;  // the value must lie in [least, most]
  double most = 0;
  std::optional<double> aim = {};  // what is hoped for, below `most`; decides nothing
};

struct Judgement {
  Bound bound;
  std::optional<Spread> value;  // the median decides; none where measuring failed
  std::string failure;          // why it did
};

bool holds(const Judgement& judgement);

// What is measured of training speed, and what its comparisons must not exceed.
struct TrainBounds {
  TrainQuestion question;
  double ddp_to_apart = 0;
  std::optional<double> ddp_aim = {};
  double single_to_pytorch = 0;
};
std::vector<TrainBounds> train_bounds(const std::string& python);

// One judgement per bound: with the session's comparisons, or with the failure where it is given.
std::vector<Judgement> judge(const TrainBounds& bounds, const Session& session,
                             const std::string& failure = {});

// What is measured of memory; what it comes to, against the ledger and against the stage's bytes
// per parameter.
std::vector<MemoryQuestion> memory_questions();
std::vector<Judgement> judge(const MemoryQuestion& question,
                             const std::optional<MemoryRatios>& ratios,
                             const std::string& failure = {});

// Our time for tokenising against tiktoken's.
Bound tokenize_bound();

// Rows for a table: bound, limit, value, verdict. Heads included.
std::vector<std::vector<std::string>> rows_of(const std::vector<Judgement>& judgements);

}  // namespace lockstep::bench
