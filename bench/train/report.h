// What a session of a training bench shows: a table, a JSON object, a plot.
#pragma once

#include "bench/train/peers.h"
#include "bench/train/session.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace lockstep::bench {

// A mode over its rounds.
struct Summary {
  std::string mode;
  Spread step_ms;  // of the launches' medians
  double tokens_per_s = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  double update_ms = 0;
  std::optional<double> exposed_comm_ms;     // of ours
  std::vector<std::int64_t> resident_bytes;  // per process, of the launch that held most
  std::optional<Spread> ratio_to_apart;      // where apart was launched, but for itself
};

// In the order of the question's modes.
std::vector<Summary> summaries_of(const Session& session);

// The table, a line per comparison with a peer, a line per mode that was left out.
std::string text_of(const Session& session, const std::vector<LeftOut>& left_out);

// "deepspeed-zero1 is left out: …".
std::string text_of(const LeftOut& one);

nlohmann::ordered_json json_of(const TrainQuestion& question, const Session& session,
                               const std::vector<LeftOut>& left_out);

// The step times as bars, with apart's as a line across them; the file's text.
std::string plot_of(const TrainQuestion& question, const Session& session);

}  // namespace lockstep::bench
