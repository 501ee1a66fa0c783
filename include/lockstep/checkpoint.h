// Checkpoints: a training state on disk, whole or not there at all.
//
//   lockstep::save_checkpoint("checkpoints", parallel, optimizer.flat_state(), {.keep = 3});
//   …
//   if (const auto path = lockstep::latest_checkpoint("checkpoints")) {
//     lockstep::load_checkpoint(*path, parallel, optimizer.flat_state());
//   }                                                          // parallel.steps() counts on
//
// One folder per step, `step-00000020`: safetensors files, in which elements [begin, end) of an
// array are the tensor "slot/name[begin:end]" (slots: parameter, buffer, and the optimizer's), and
// manifest.json with every array, every file's size and XXH3 hash, and the user's state. Parameters
// are saved in full precision (the fp32 masters under bf16), buffers in their own type, as rank 0
// has them. Ranks write side by side; which rank wrote what is of no meaning to readers, so that a
// state saved on some ranks loads on any other number of them.
//
// A step is written into `.step-00000020`, flushed to the disk and renamed: whenever a process
// dies, what was published before still loads. The next save removes what a dead one left.
//
// What is saved: parameters, buffers, the optimizer's state, parallel.steps() (which, with the seed
// and the leaf, decides the dropout of micro_steps). Not saved: gradients that were collected
// without a step, and LibTorch's generator, which only loops without micro_steps() draw from.
#pragma once

#include "lockstep/optimizer_state.h"
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

struct SaveOptions {
  std::int64_t keep = 0;  // newest steps to keep in the folder, counting this one; 0: all
  std::string user =
      "{}";  // a JSON object: whatever the program needs to go on, data position etc.
};

// Collective. Saves parallel.steps() into `folder`, which is made when it is not there, and returns
// the step's path. A step that is there already is replaced. Throws on every rank the first rank's
// failure, with nothing published: Error naming file and cause (a full disk, a folder that another
// process saves into), UsageError for a user text that is no JSON object.
std::string save_checkpoint(const std::string& folder, const Parallel& parallel,
                            const OptimizerState& optimizer, const SaveOptions& options = {});

// The path of the newest step in `folder`, or nothing. Does not look into it.
std::optional<std::string> latest_checkpoint(const std::string& folder);

struct LoadedCheckpoint {
  std::int64_t step = 0;
  std::string user;  // as it was saved
};

// Collective. Makes model and optimizer what they were when `path` (a step's folder) was saved, on
// any number of ranks, and parallel.steps() with them. Verifies all of it first: on any difference,
// nothing has been changed. Throws on every rank Error when something is missing, extra or damaged,
// UsageError when it is of another model or optimizer: file or parameter, expected, found, the fix.
LoadedCheckpoint load_checkpoint(const std::string& path, Parallel& parallel,
                                 OptimizerState& optimizer);

}  // namespace lockstep
