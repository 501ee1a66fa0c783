#include "cli/plan_options.h"

#include "base/quantity.h"
#include "cli/hardware.h"
#include "cli/values.h"
#include "data/byte_tokenizer.h"
#include "lockstep/error.h"
#include "models/catalogue.h"
#include "models/parameter_list.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kDefaultHardware = "h100";
constexpr std::int64_t kLargest = std::int64_t{1} << 53;

Command plan_syntax() {
  return {
      .name = "lockstep plan",
      .purpose =
          "What a model needs and how long a step takes, by stage, before anything runs.\n"
          "  lockstep plan --params 8e9 --ranks 8\n"
          "  lockstep plan --model gpt2-124m --ranks 2 --hardware cpu-2core --precision f32",
      .flags = {{"--params", "N", "Parameters of the model: 8e9, 8B, 124M"},
                {"--model", "NAME|FILE", "Or a model: gpt2-124m, a config.json, a folder with one"},
                {"--blocks", "N", "Equal blocks that --params come in; counts buffers too"},
                {"--ranks", "N", "Processes, or GPUs (8)"},
                {"--hosts", "N", "That they are spread over (as many as the hardware needs)"},
                {"--shard-size", "N", "hybrid: ranks that share one replica (those of a host)"},
                {"--hardware", "NAME|FILE", "a100, h100, h200, cpu-2core or a .toml file (h100)"},
                {"--device-memory", "BYTES", "Of one rank: 80GB, 80GiB (the hardware's)"},
                {"--precision", "NAME", "bf16 or f32 (bf16)"},
                {"--optimizer", "NAME", "adamw or sgd (adamw)"},
                {"--momentum", "X", "Of sgd (0)"},
                {"--frozen", "SHARE", "Of all parameters that are not trained, below 1 (0)"},
                {"--micro-batch", "N", "Sequences in one micro-batch of one rank (1)"},
                {"--seq", "N", "Tokens of one sequence (2048, or the model's context if less)"},
                {"--accumulate", "N", "Micro-batches per rank and step (1)"},
                {"--accumulate-in", "WHERE", "full or shard (shard)"},
                {"--bucket-mb", "MB", "Gradients per collective; 0: one per parameter (25)"},
                {"--unit-blocks", "N", "zero3, hybrid: blocks gathered as one (1)"},
                {"--prefetch", "N", "zero3, hybrid: units gathered ahead (1)"},
                {"--reshard", "WHEN", "zero3, hybrid: always, never or host (always)"},
                {"--overlap", "on|off", "Communication beside computation (on)"},
                {"--algorithm", "NAME",
                 "Of gradients: auto, direct, pairwise, ring, halving-doubling, tree, "
                 "hierarchical, coordinator (auto)"},
                {"--inside-gb-per-s", "X", "Link of one rank inside its host (the hardware's)"},
                {"--between-gb-per-s", "X", "Link of one host to others (the hardware's)"},
                {"--slowest", "X", "One rank computes X times as long (1)"},
                {"--recompute", "", "Blocks' activations, in backward"},
                {"--no-flash-attention", "", "Keep the T x T softmax weights"},
                {"--share-parameters", "", "One copy per host (CPUs)"},
                {"--reproducible", "", "Keep log2(accumulate) partial sums"},
                {"--json", "", "Print one JSON object"},
                {"--explain", "", "Each formula with its numbers"},
                {"--web", "", "Serve a page that asks these questions, to this machine only"},
                {"--port", "N", "Of --web (a free one)"}},
      .not_built = {},
      .rest = Rest::none};
}

// One of several words for one of several values.
template <class Value, std::size_t N>
Value choice(const CommandLine& line, const std::string& name, Value otherwise,
             const std::array<std::pair<std::string_view, Value>, N>& choices) {
  const auto text = line.value_of(name);
  if (!text) {
    return otherwise;
  }
  std::string expected;
  for (const auto& [word, value] : choices) {
    if (*text == word) {
      return value;
    }
    expected += (expected.empty() ? "" : " or ") + std::string(word);
  }
  throw UsageError(name + ": expected " + expected + ", got '" + *text + "'");
}

std::int64_t whole_or(const CommandLine& line, const std::string& name, std::int64_t low,
                      std::int64_t otherwise) {
  return whole_value(line, name, {low, kLargest}).value_or(otherwise);
}

plan::Transformer transformer_of(const models::Gpt2Config& config) {
  return {.family = plan::Family::gpt2,
          .layers = config.layers,
          .width = config.width,
          .heads = config.heads,
          .head_size = config.width / config.heads,
          .hidden = 4 * config.width,
          .vocabulary = config.vocabulary,
          .context = config.context};
}

plan::Transformer transformer_of(const models::LlamaConfig& config) {
  return {.family = plan::Family::llama,
          .layers = config.layers,
          .width = config.width,
          .heads = config.heads,
          .head_size = config.head_size,
          .hidden = config.hidden,
          .vocabulary = config.vocabulary,
          .context = config.context};
}

// A small model's vocabulary is its tokenizer's: that of bytes.
models::ModelConfig configuration_of(const std::string& model) {
  const models::ModelConfig config = models::config_of(model, 0);
  const bool open = std::visit([](const auto& one) { return one.vocabulary == 0; }, config);
  return open ? models::config_of(model, data::kByteVocabulary) : config;
}

void set_model(plan::PlanQuery& query, const std::string& model) {
  const models::ModelConfig config = configuration_of(model);
  query.model = model;
  for (const models::ListedParameter& one : models::parameters_of(config)) {
    query.members.push_back({one.elements, one.unit, models::keep_f32(one.name)});
    query.parameters += one.elements;
  }
  query.transformer = std::visit([](const auto& one) { return transformer_of(one); }, config);
  query.sequence = std::min(query.sequence, query.transformer->context);
}

void set_params(plan::PlanQuery& query, const CommandLine& line, const std::string& text) {
  const auto count = quantity::count(text);
  if (!count || *count < 1 || *count > plan::kMostParameters) {
    throw UsageError("--params: expected from 1 to 1e15 parameters, as in 8e9 or 8B, got '" + text +
                     "'");
  }
  query.parameters = *count;
  query.blocks = whole_or(line, "--blocks", 1, 0);
}

void read_model(plan::PlanQuery& query, const CommandLine& line) {
  const auto params = line.value_of("--params");
  const auto model = line.value_of("--model");
  if (params.has_value() == model.has_value()) {
    throw UsageError(params ? "--params, --model: give one of them"
                            : "--params: how large is the model? give --params 8e9 or --model "
                              "gpt2-124m");
  }
  if (model && line.value_of("--blocks")) {
    throw UsageError("--blocks: a --model has its own; leave it out");
  }
  if (model) {
    set_model(query, *model);
  } else {
    set_params(query, line, *params);
  }
}

void set_speed(plan::Link& link, const CommandLine& line, const std::string& name) {
  const auto speed = decimal_value(line, name);
  if (speed && *speed <= 0) {
    throw UsageError(name + ": expected more than 0, got '" + quantity::text_of(*speed) + "'");
  }
  link.bytes_per_s = speed ? *speed * 1e9 : link.bytes_per_s;
}

void read_machine(plan::PlanQuery& query, const CommandLine& line) {
  query.hardware = hardware_of(line.value_of("--hardware").value_or(kDefaultHardware));
  query.ranks = static_cast<int>(whole_value(line, "--ranks", {1, plan::kMostRanks}).value_or(8));
  query.hosts = static_cast<int>(whole_value(line, "--hosts", {1, plan::kMostRanks}).value_or(0));
  query.shard_size =
      static_cast<int>(whole_value(line, "--shard-size", {1, plan::kMostRanks}).value_or(0));
  set_speed(query.hardware.inside, line, "--inside-gb-per-s");
  set_speed(query.hardware.between, line, "--between-gb-per-s");
  const auto memory = bytes_value(line, "--device-memory", kLargest);
  if (memory && *memory == 0) {
    throw UsageError("--device-memory: expected at least 1 byte, as in 80GB, got '0'");
  }
  query.device_memory = memory.value_or(0);
}

int optimizer_vectors(const CommandLine& line) {
  using Entry = std::pair<std::string_view, int>;
  const int vectors =
      choice(line, "--optimizer", 2, std::array{Entry{"adamw", 2}, Entry{"sgd", 0}});
  const double momentum = decimal_value(line, "--momentum").value_or(0);
  if (momentum > 0 && vectors == 2) {
    throw UsageError("--momentum " + quantity::text_of(momentum) + ": use --optimizer sgd");
  }
  return momentum > 0 ? 1 : vectors;
}

void read_recipe(plan::PlanQuery& query, const CommandLine& line) {
  using Entry = std::pair<std::string_view, plan::Precision>;
  query.precision =
      choice(line, "--precision", query.precision,
             std::array{Entry{"bf16", plan::Precision::bf16}, Entry{"f32", plan::Precision::f32}});
  query.optimizer_vectors = optimizer_vectors(line);
  const double frozen = decimal_value(line, "--frozen").value_or(0);
  if (frozen >= 1) {
    throw UsageError("--frozen: expected a share from 0 to below 1, got '" +
                     quantity::text_of(frozen) + "'");
  }
  query.frozen_ppm = std::llround(frozen * 1e6);
  query.micro_batch = whole_or(line, "--micro-batch", 1, query.micro_batch);
  query.sequence = whole_or(line, "--seq", 1, query.sequence);
  query.accumulate = whole_or(line, "--accumulate", 1, query.accumulate);
}

void read_dials(plan::PlanQuery& query, const CommandLine& line) {
  using Truth = std::pair<std::string_view, bool>;
  using Resharding = std::pair<std::string_view, plan::Reshard>;
  query.accumulate_in_shard = choice(line, "--accumulate-in", query.accumulate_in_shard,
                                     std::array{Truth{"shard", true}, Truth{"full", false}});
  query.overlap =
      choice(line, "--overlap", query.overlap, std::array{Truth{"on", true}, Truth{"off", false}});
  query.reshard = choice(line, "--reshard", query.reshard,
                         std::array{Resharding{"always", plan::Reshard::always},
                                    Resharding{"never", plan::Reshard::never},
                                    Resharding{"host", plan::Reshard::host}});
  query.bucket_mb = decimal_value(line, "--bucket-mb").value_or(query.bucket_mb);
  query.unit_blocks = whole_or(line, "--unit-blocks", 1, query.unit_blocks);
  query.prefetch = whole_or(line, "--prefetch", 0, query.prefetch);
  query.slowest = decimal_value(line, "--slowest").value_or(query.slowest);
  query.recompute = line.value_of("--recompute").has_value();
  query.flash_attention = !line.value_of("--no-flash-attention").has_value();
  query.share_parameters = line.value_of("--share-parameters").has_value();
  query.reproducible = line.value_of("--reproducible").has_value();
}

void read_algorithm(plan::PlanQuery& query, const CommandLine& line) {
  const auto text = line.value_of("--algorithm");
  if (!text || *text == "auto") {
    return;
  }
  std::string expected = "auto";
  for (const plan::Algorithm algorithm : plan::kPlannedAlgorithms) {
    if (*text == name_of(algorithm)) {
      query.algorithm = algorithm;
      return;
    }
    expected += " or " + std::string(name_of(algorithm));
  }
  throw UsageError("--algorithm: expected " + expected + ", got '" + *text + "'");
}

PlanForm form_of(const CommandLine& line) {
  const bool json = line.value_of("--json").has_value();
  const bool explain = line.value_of("--explain").has_value();
  const bool page = line.value_of("--web").has_value();
  if (json + explain + page > 1) {
    throw UsageError("--json, --explain, --web: give one of them");
  }
  if (!page && line.value_of("--port")) {
    throw UsageError("--port: is for --web; give both, or leave it out");
  }
  return json      ? PlanForm::json
         : explain ? PlanForm::explanation
         : page    ? PlanForm::page
                   : PlanForm::table;
}

bool is_of_the_question(const std::string& name) {
  constexpr std::array kShown{"--json", "--explain", "--web", "--port"};
  return std::ranges::find(kShown, name) == kShown.end();
}

}  // namespace

std::vector<PlanOption> question_options() {
  std::vector<PlanOption> options;
  for (const Flag& flag : plan_syntax().flags) {
    if (is_of_the_question(flag.name)) {
      options.push_back({flag.name.substr(2), flag.value.empty()});
    }
  }
  return options;
}

std::vector<GivenOption> question_of(std::span<const std::string> arguments) {
  std::vector<GivenOption> given;
  for (const Given& one : parse(plan_syntax(), arguments).given) {
    if (is_of_the_question(one.name)) {
      given.push_back({one.name.substr(2), one.value});
    }
  }
  return given;
}

PlanRequest parse_plan(std::span<const std::string> arguments) {
  const CommandLine line = parse(plan_syntax(), arguments);
  PlanRequest request;
  request.print = line.print;
  if (!request.print.empty()) {
    return request;
  }
  request.form = form_of(line);
  request.port = static_cast<int>(whole_value(line, "--port", {0, 65535}).value_or(0));
  if (request.form == PlanForm::page && !line.value_of("--params") && !line.value_of("--model")) {
    return request;  // the page asks
  }
  read_machine(request.query, line);
  read_model(request.query, line);
  read_recipe(request.query, line);
  read_dials(request.query, line);
  read_algorithm(request.query, line);
  return request;
}

}  // namespace lockstep::cli
