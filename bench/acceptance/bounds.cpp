#include "bench/acceptance/bounds.h"

#include "bench/common/table.h"

#include <utility>

namespace lockstep::bench {
namespace {

TrainQuestion question_of(const std::string& precision, std::int64_t micro_batch,
                          std::int64_t sequence, const std::string& python) {
  TrainQuestion question;
  question.precision = precision;
  question.micro_batch = micro_batch;
  question.sequence = sequence;
  question.modes = modes_named({"apart", "ddp", kPyTorch});
  question.python = python;
  return question;
}

std::string limit_text(const Bound& bound) {
  const std::string most = "<= " + fixed(bound.most, 2);
  if (bound.least > 0) {
    return fixed(bound.least, 2) + " to " + fixed(bound.most, 2);
  }
  return bound.aim ? most + " (aim " + fixed(*bound.aim, 2) + ")" : most;
}

std::string value_text(const Judgement& judgement) {
  if (!judgement.value) {
    return "not measured: " + judgement.failure;
  }
  const Spread& value = *judgement.value;
  const std::string median = fixed(value.median, 3);
  return value.least == value.most
             ? median
             : median + " (" + fixed(value.least, 3) + " to " + fixed(value.most, 3) + ")";
}

}  // namespace

bool holds(const Judgement& judgement) {
  return judgement.value && judgement.value->median >= judgement.bound.least &&
         judgement.value->median <= judgement.bound.most;
}

std::vector<TrainBounds> train_bounds(const std::string& python) {
  return {{.question = question_of("f32", 1, 128, python),
           .ddp_to_apart = 1.06,
           .ddp_aim = 1.03,
           .single_to_pytorch = 1.02},
          {.question = question_of("f32", 2, 256, python),
           .ddp_to_apart = 1.03,
           .ddp_aim = std::nullopt,
           .single_to_pytorch = 1.02},
          {.question = question_of("bf16", 2, 256, python),
           .ddp_to_apart = 1.03,
           .ddp_aim = std::nullopt,
           .single_to_pytorch = 1.02}};
}

std::vector<Judgement> judge(const TrainBounds& bounds, const Session& session,
                             const std::string& failure) {
  const auto judged = [&](const char* mode, const char* yardstick, Bound bound) {
    Judgement judgement{.bound = std::move(bound), .value = std::nullopt, .failure = failure};
    for (const Comparison& comparison : session.comparisons) {
      if (comparison.mode == mode && comparison.yardstick == yardstick) {
        judgement.value = comparison.ratio;
      }
    }
    return judgement;
  };
  const std::string prefix = title(bounds.question) + ": ";
  std::vector<Judgement> judgements;
  judgements.push_back(
      judged("ddp", "apart", {prefix + "ddp / apart", 0, bounds.ddp_to_apart, bounds.ddp_aim}));
  judgements.push_back(
      judged("apart", kPyTorch, {prefix + "apart / PyTorch none", 0, bounds.single_to_pytorch}));
  return judgements;
}

std::vector<MemoryQuestion> memory_questions() {
  std::vector<MemoryQuestion> questions{{.precision = "f32", .stage = "ddp", .ranks = 2}};
  for (const int ranks : {2, 4}) {
    for (const char* stage : {"ddp", "zero1", "zero2", "zero3"}) {
      questions.push_back({.precision = "bf16", .stage = stage, .ranks = ranks});
    }
  }
  return questions;
}

std::vector<Judgement> judge(const MemoryQuestion& question,
                             const std::optional<MemoryRatios>& ratios,
                             const std::string& failure) {
  const std::string prefix = "gpt2-124m " + question.precision + " 1x128 " + question.stage + " " +
                             std::to_string(question.ranks) + " ranks: ";
  const auto judged = [&](Bound bound, double MemoryRatios::*ratio) {
    Judgement judgement{.bound = std::move(bound), .value = std::nullopt, .failure = failure};
    if (ratios) {
      judgement.value = spread_of({(*ratios).*ratio});
    }
    return judgement;
  };
  const std::string bytes = fixed(bytes_per_parameter(question), 1) + " bytes per parameter";
  return {
      judged({prefix + "memory / (ledger + activations)", 0.97, 1.03}, &MemoryRatios::to_ledger),
      judged({prefix + "memory less activations / " + bytes, 0.98, 1.02},
             &MemoryRatios::to_formula)};
}

Bound tokenize_bound() {
  return {.text = "100 MB with GPT-2's tokenizer: lockstep / tiktoken", .least = 0, .most = 1};
}

std::vector<std::vector<std::string>> rows_of(const std::vector<Judgement>& judgements) {
  std::vector<std::vector<std::string>> rows{{"bound", "limit", "value", "verdict"}};
  for (const Judgement& judgement : judgements) {
    rows.push_back({judgement.bound.text, limit_text(judgement.bound), value_text(judgement),
                    holds(judgement) ? "hit" : "MISS"});
  }
  return rows;
}

}  // namespace lockstep::bench
