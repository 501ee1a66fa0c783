// `lockstep train` on one rank.
#pragma once

#include "lockstep/group.h"
#include "train/options.h"

#include <functional>

namespace lockstep::train {

class Trainer;

// Called on every rank between the last step and the proof that all ranks hold the same weights.
using AfterTraining = std::function<void(Trainer&)>;

// Trains as asked, verifies that all ranks end with the same weights, leaves the run folder and the
// report. Collective. Rank 0 prints to stdout. Returns the exit code; throws UsageError for what
// can't be done as asked, Error when replicas differ or when the last loss is not finite (the files
// are written then), GroupError when ranks fail.
//
// Changes the process: LibTorch's number of threads and CPU allocator, malloc's thresholds.
int run(const Options& options, Group world, const AfterTraining& after_training = {});

}  // namespace lockstep::train
