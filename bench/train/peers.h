// The peers of a training bench: Python programs in bench/peers that train the same model and take
// the words and write the result of lockstep-bench-train-rank.
#pragma once

#include "bench/train/options.h"

#include <string>
#include <vector>

namespace lockstep::bench {

// A peer that can't be launched here.
struct LeftOut {
  Mode mode;
  std::string reason;  // and what to install
};

// Adds those of `peers` whose package the question's interpreter has to its modes, and returns the
// others. Throws UsageError when it lacks the package of a mode that the question names itself.
std::vector<LeftOut> add_peers(TrainQuestion& question, const std::vector<Mode>& peers);

// What starts a rank of a peer, without the rank's own words.
std::vector<std::string> peer_command(const TrainQuestion& question, const Mode& mode);

}  // namespace lockstep::bench
