#include "cli/plan_text.h"

#include "cli/figures.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

namespace lockstep::cli {
namespace {

using plan::PlanAnswer;
using plan::PlanQuery;
using plan::StageAnswer;

constexpr std::size_t kBarWidth = 40;

std::string name(Stage stage) { return std::string(name_of(stage)); }

std::string plural(std::int64_t count, const std::string& thing) {
  return with_commas(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string head(const PlanQuery& query, const PlanAnswer& answer) {
  const bool bf16 = query.precision == plan::Precision::bf16;
  std::string text = (query.model.empty() ? "" : query.model + ": ") +
                     plural(answer.parameters, "parameter") + ", " + (bf16 ? "bf16" : "f32") +
                     ", on " + plural(answer.ranks, "rank") + " of " +
                     plural(answer.dials.hosts(), "host") + "\n";
  text += query.hardware.description + "; " + in_gb(answer.device_memory) + " GB (" +
          in_gib(answer.device_memory) + " GiB) for each rank\n";
  text += with_commas(query.accumulate) +
          (query.accumulate == 1 ? " micro-batch of " : " micro-batches of ");
  text += with_commas(query.micro_batch) + " x " + with_commas(query.sequence) +
          " tokens per rank and step, " + with_commas(answer.tokens_per_step) +
          " tokens of all ranks\n";
  if (!answer.parts_known) {
    text +=
        "Only the number of parameters is known: no buffers and no activations are counted, "
        "and 32 equal blocks are assumed for time; --model or --blocks knows more.\n";
  }
  return text;
}

// P, G, O, T, A by bytes, and | where the device's memory ends.
std::string bar(const StageAnswer& one, std::int64_t scale, std::int64_t memory) {
  const std::array<std::pair<char, std::int64_t>, 5> parts{{{'P', one.bytes.parameters},
                                                            {'G', one.bytes.gradients},
                                                            {'O', one.bytes.optimizer},
                                                            {'T', one.bytes.transient},
                                                            {'A', one.activations}}};
  const auto column = [&](std::int64_t bytes) {
    return static_cast<std::size_t>(static_cast<double>(bytes) / static_cast<double>(scale) *
                                        static_cast<double>(kBarWidth) +
                                    0.5);
  };
  std::string text;
  std::int64_t sum = 0;
  for (const auto& [letter, bytes] : parts) {
    sum += bytes;
    text.resize(std::max(text.size(), column(sum)), letter);
  }
  const std::size_t limit = column(memory);
  if (limit <= kBarWidth) {
    text.resize(std::max(text.size(), limit), ' ');
    text.insert(limit, "|");
  }
  return text;
}

std::string row(const std::array<std::string, 12>& cells) {
  constexpr std::array<std::size_t, 12> kWidths{7, 9, 9, 9, 9, 9, 10, 9, 5, 9, 11, 11};
  std::string text = left(cells[0], kWidths[0]);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    text += right(cells[i], kWidths[i]);
  }
  return text;
}

std::string stage_row(const StageAnswer& one) {
  return row({name(one.stage), in_gb(one.bytes.parameters), in_gb(one.bytes.gradients),
              in_gb(one.bytes.optimizer), in_gb(one.bytes.transient), in_gb(one.activations),
              in_gb(one.total_bytes), in_gib(one.total_bytes), one.fits ? "yes" : "no",
              in_gb(one.sent.total()), duration(one.floor_ms),
              one.time ? duration(one.time->step_s * 1e3) : "-"});
}

std::string table(const PlanAnswer& answer) {
  std::int64_t scale = 1;
  for (const StageAnswer& one : answer.stages) {
    scale = std::max(scale, one.total_bytes);
  }
  std::string text =
      "\nBytes of one rank in GB (1e9), their sum in GiB (2^30) too; sent in one step\n";
  text += row({"stage", "params", "grads", "optim", "transit", "activ", "total", "GiB", "fits",
               "sent", "floor", "step"}) +
          "\n";
  for (const StageAnswer& one : answer.stages) {
    text += stage_row(one) + "\n";
  }
  text += "\n";
  for (const StageAnswer& one : answer.stages) {
    text += left(name(one.stage), 7) + " " + bar(one, scale, answer.device_memory) + "\n";
  }
  return text +
         "        P parameters  G gradients  O optimizer  T in transit  A activations  | memory\n";
}

std::string or_none(const std::optional<std::int64_t>& value) {
  return value ? with_commas(*value) : "none";
}

template <class Value>
std::string by_stage(const PlanAnswer& answer, const Value& value) {
  std::string text;
  for (const StageAnswer& one : answer.stages) {
    text += (text.empty() ? "" : ", ") + name(one.stage) + " " + or_none(value(one));
  }
  return text + "\n";
}

std::string of_a_host(const PlanAnswer& answer) {
  const int ranks = std::min(answer.ranks, answer.dials.ranks_per_host);
  std::string text;
  for (const StageAnswer& one : answer.stages) {
    const std::int64_t bytes = one.total_bytes * (one.stage == Stage::single ? 1 : ranks);
    text += (text.empty() ? "" : ", ") + name(one.stage) + " " + in_gb(bytes) + " GB";
  }
  return text + "\n";
}

std::string times(const PlanAnswer& answer) {
  std::string text =
      "\nOne step: exposed communication, tokens per second, share of training apart\n";
  for (const StageAnswer& one : answer.stages) {
    if (!one.time) {
      text += left(name(one.stage), 7) + " --algorithm can't add up what this stage adds up\n";
      continue;
    }
    char line[96];
    std::snprintf(line, sizeof(line), "%14.4g tokens/s %7.1f %%", one.tokens_per_s,
                  one.efficiency * 100);
    text += left(name(one.stage), 7) + right(duration(one.time->exposed_s * 1e3), 12) + line + "\n";
  }
  return text;
}

}  // namespace

std::string plan_table(const PlanQuery& query, const PlanAnswer& answer) {
  std::string text = head(query, answer) + table(answer) + times(answer);
  text += "\nSmallest stage that fits: " +
          (answer.smallest_stage ? name(*answer.smallest_stage) : "none") + "\n";
  text += "Smallest number of ranks that fits: " +
          by_stage(answer, [](const StageAnswer& one) { return one.smallest_ranks; });
  text += "All ranks of a host together: " + of_a_host(answer);
  text += "Largest model (its state alone): " +
          by_stage(answer, [](const StageAnswer& one) { return one.largest_parameters; });
  if (query.transformer) {
    text += "Largest micro-batch: " +
            by_stage(answer, [](const StageAnswer& one) { return one.largest_micro_batch; });
  }
  text += "\n";
  for (const std::string& line : answer.advice) {
    text += "- " + line + "\n";
  }
  return text;
}

}  // namespace lockstep::cli
