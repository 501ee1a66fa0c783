#include "train/option_table.h"

#include "base/quantity.h"
#include "lockstep/error.h"
#include "models/catalogue.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

constexpr std::int64_t kMany = 1'000'000'000;  // keeps products of options far from overflow

template <class T>
struct Bounds {
  T low;
  T high;
};

[[noreturn]] void refuse(const std::string& name, const std::string& expected,
                         std::string_view text) {
  throw UsageError("--" + name + ": expected " + expected + ", got '" + std::string(text) + "'");
}

std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(double value) { return quantity::text_of(value); }
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : std::string();
}

// A whole number within bounds; Member is an int, an std::int64_t or an optional one.
template <class Member>
OptionField whole(std::string name, std::string help, Member Options::*member,
                  Bounds<std::int64_t> bounds) {
  const auto set = [=](Options& options, std::string_view text) {
    const auto value = quantity::whole(text);
    if (!value || *value < bounds.low || *value > bounds.high) {
      refuse(name, "a whole number from " + text_of(bounds.low) + " to " + text_of(bounds.high),
             text);
    }
    if constexpr (std::is_same_v<Member, int> || std::is_same_v<Member, std::optional<int>>) {
      options.*member = static_cast<int>(*value);
    } else {
      options.*member = *value;
    }
  };
  const auto toml = [=](const Options& options) { return text_of(options.*member); };
  return {name, "N", std::move(help), set, toml};
}

// Upper bounds are exclusive: a dropout of 1 leaves nothing.
OptionField decimal(std::string name, std::string help, double Options::*member,
                    Bounds<double> bounds) {
  const bool open_end = bounds.high == std::numeric_limits<double>::infinity();
  const std::string expected = "a number of at least " + text_of(bounds.low) +
                               (open_end ? "" : " and below " + text_of(bounds.high));
  const auto set = [=](Options& options, std::string_view text) {
    const auto value = quantity::decimal(text);
    if (!value || *value < bounds.low || *value >= bounds.high) {
      refuse(name, expected, text);
    }
    options.*member = *value;
  };
  const auto toml = [=](const Options& options) { return text_of(options.*member); };
  return {name, "X", std::move(help), set, toml};
}

OptionField text(std::string name, std::string value, std::string help,
                 std::string Options::*member) {
  const auto set = [=](Options& options, std::string_view given) {
    if (given.empty()) {
      refuse(name, "a name or path", given);
    }
    options.*member = given;
  };
  const auto toml = [=](const Options& options) {
    return (options.*member).empty() ? std::string() : quoted(options.*member);
  };
  return {name, std::move(value), std::move(help), set, toml};
}

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

std::string joined(std::span<const std::string> names, std::string_view between) {
  std::string result;
  for (const std::string& one : names) {
    result.append(result.empty() ? "" : between).append(one);
  }
  return result;
}

template <class T>
std::vector<std::string> names_of(const std::vector<Choice<T>>& choices) {
  std::vector<std::string> names;
  for (const Choice<T>& choice : choices) {
    names.emplace_back(choice.name);
  }
  return names;
}

// `later`: values of the documentation that this version has not.
template <class T>
OptionField one_of(std::string name, std::string help, T Options::*member,
                   std::vector<Choice<T>> choices, std::vector<std::string> later) {
  const std::vector<std::string> names = names_of(choices);
  const auto set = [=](Options& options, std::string_view given) {
    for (const Choice<T>& choice : choices) {
      if (choice.name == given) {
        options.*member = choice.value;
        return;
      }
    }
    for (const std::string& other : later) {
      if (other == given) {
        throw UsageError("--" + name + " " + other + ": not built yet; use " +
                         joined(names, " or "));
      }
    }
    refuse(name, joined(names, " or "), given);
  };
  const auto toml = [=](const Options& options) {
    for (const Choice<T>& choice : choices) {
      if (choice.value == options.*member) {
        return quoted(choice.name);
      }
    }
    return std::string();
  };
  return {name, joined(names, "|"), std::move(help), set, toml};
}

// An option with a single meaning so far: accepted in these spellings, not stored.
OptionField only(std::string name, std::string help, std::vector<std::string> accepted,
                 std::vector<std::string> later) {
  const auto set = [=](Options&, std::string_view given) {
    for (const std::string& one : accepted) {
      if (one == given) {
        return;
      }
    }
    for (const std::string& other : later) {
      if (other == given) {
        throw UsageError("--" + name + " " + other + ": not built yet; use " +
                         joined(accepted, " or "));
      }
    }
    refuse(name, joined(accepted, " or "), given);
  };
  return {name, joined(accepted, "|"), std::move(help), set,
          [](const Options&) { return std::string(); }};
}

OptionField switched(std::string name, std::string help, bool Options::*member) {
  const auto set = [=](Options& options, std::string_view given) {
    if (given != "true" && given != "false") {
      refuse(name, "true or false", given);
    }
    options.*member = given == "true";
  };
  const auto toml = [=](const Options& options) {
    return std::string(options.*member ? "true" : "false");
  };
  return {name, "", std::move(help), set, toml};
}

OptionField deadline() {
  const auto set = [](Options& options, std::string_view given) {
    const auto value = quantity::seconds(given);
    if (!value || *value < 1 || *value > kMany || *value != std::floor(*value)) {
      refuse("deadline", "whole seconds of at least 1, as in 300 or 5m", given);
    }
    options.deadline_s = *value;
  };
  return {"deadline", "S", "Seconds without a sign of life before a rank counts as lost (300)", set,
          [](const Options& options) { return text_of(options.deadline_s); }};
}

OptionField device_memory() {
  const auto set = [](Options& options, std::string_view given) {
    const auto value = quantity::bytes(given);
    if (!value || *value < 1) {
      refuse("device-memory", "a number of bytes of at least 1, as in 80GB or 16GiB", given);
    }
    options.device_memory = *value;
  };
  return {
      "device-memory", "BYTES",
      "Memory of a rank that the run must fit into (the ranks' parts of what the host has left)",
      set, [](const Options& options) { return text_of(options.device_memory); }};
}

OptionField sample() {
  const auto set = [](Options& options, std::string_view given) {
    const auto value = quantity::bytes(given);
    if (!value || *value < 0 || *value > kMany) {
      refuse("sample", "a number of bytes from 0 to 1GB, as in 400 or 1KB", given);
    }
    options.sample_bytes = *value;
  };
  return {"sample", "N", "Bytes of text to generate and print at the end (0)", set,
          [](const Options& options) { return text_of(options.sample_bytes); }};
}

using Fields = std::vector<OptionField>;

void add_model_and_data(Fields& fields) {
  fields.push_back(whole("ranks", "Ranks to start on this host (1)", &Options::ranks, {1, 1024}));
  fields.push_back(one_of<Stage>("stage", "How the ranks share the work (ddp)", &Options::stage,
                                 {{"single", Stage::single},
                                  {"ddp", Stage::ddp},
                                  {"zero1", Stage::zero1},
                                  {"zero2", Stage::zero2},
                                  {"zero3", Stage::zero3}},
                                 {"coordinator", "async", "hybrid"}));
  fields.push_back(text("model", "NAME",
                        joined(models::names(), ", ") +
                            ", a folder with config.json and *.safetensors, or a config.json "
                            "alone for fresh weights (gpt2-tiny)",
                        &Options::model));
  fields.push_back(text("data", "FILE",
                        "Text to train on; 'text' is the plays that set-up prepares (text)",
                        &Options::data));
  fields.push_back(
      text("tokenizer", "bytes|gpt2|FILE",
           "How text becomes tokens; FILE is a Hugging Face tokenizer.json (a model folder's "
           "own, else bytes)",
           &Options::tokenizer));
}

void add_steps(Fields& fields) {
  fields.push_back(whole("micro-batch", "Sequences in one micro-batch of one rank (2)",
                         &Options::micro_batch, {1, kMany}));
  fields.push_back(whole("seq", "Tokens of one sequence (256)", &Options::sequence, {1, kMany}));
  fields.push_back(
      whole("accumulate", "Micro-batches per rank and step (1)", &Options::accumulate, {1, kMany}));
  fields.push_back(whole("steps", "Steps in total; 0 reports the initial weights (20)",
                         &Options::steps, {0, kMany}));
  fields.push_back(whole("seed", "Of weights, order of the data and dropout (1)", &Options::seed,
                         {0, std::numeric_limits<std::int64_t>::max()}));
  fields.push_back(one_of<PrecisionName>(
      "precision", "bf16 keeps fp32 master weights (f32)", &Options::precision,
      {{"f32", PrecisionName::f32}, {"bf16", PrecisionName::bf16}}, {}));
}

void add_optimizer(Fields& fields) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  fields.push_back(
      decimal("dropout", "Share of activations dropped (0)", &Options::dropout, {0.0, 1.0}));
  fields.push_back(
      one_of<OptimizerName>("optimizer", "What makes the update (adamw)", &Options::optimizer,
                            {{"adamw", OptimizerName::adamw}, {"sgd", OptimizerName::sgd}}, {}));
  fields.push_back(decimal("momentum", "Of --optimizer sgd; costs 4 bytes per parameter (0)",
                           &Options::momentum, {0.0, 1.0}));
  fields.push_back(
      decimal("lr", "Highest learning rate (3e-4)", &Options::learning_rate, {0.0, kNoLimit}));
  fields.push_back(whole("warmup",
                         "Steps until --lr is reached (the smaller of 100 and steps / 10)",
                         &Options::warmup, {0, kMany}));
  fields.push_back(decimal("weight-decay", "Of matrices and embeddings (0.1)",
                           &Options::weight_decay, {0.0, kNoLimit}));
  fields.push_back(decimal("clip", "Largest gradient norm; 0 turns clipping off (1)",
                           &Options::clip, {0.0, kNoLimit}));
}

void add_communication(Fields& fields) {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  fields.push_back(one_of<std::optional<bool>>(
      "accumulate-in",
      "Where micro-batches add up: full costs memory, shard traffic (shard with zero2 and zero3)",
      &Options::accumulate_in_shard, {{"full", false}, {"shard", true}}, {}));
  fields.push_back(one_of<std::optional<bool>>(
      "reshard",
      "always: units of --stage zero3 can be read in their own passes only, as between hosts; "
      "never: "
      "they stay readable, which on one host costs no memory (never)",
      &Options::reshard, {{"always", true}, {"never", false}}, {"host"}));
  fields.push_back(switched("share-parameters",
                            "One copy of the parameters for all ranks, each of which updates its "
                            "share; zero3 always has it",
                            &Options::share_parameters));
  fields.push_back(whole("unit-blocks", "Blocks of the model in one unit of --stage zero3 (1)",
                         &Options::unit_blocks, {1, kMany}));
  fields.push_back(decimal("bucket-mb",
                           "MB of gradients in one collective; 0: one per parameter (25)",
                           &Options::bucket_mb, {0.0, kNoLimit}));
  fields.push_back(one_of<bool>("overlap", "Communicate during backward (on)", &Options::overlap,
                                {{"on", true}, {"off", false}}, {}));
  fields.push_back(switched("recompute",
                            "Keep no activations of blocks; backward computes them again, for "
                            "about a third more time",
                            &Options::recompute));
  fields.push_back(only(
      "algorithm", "Of collectives (auto)", {"auto", "direct"},
      {"pairwise", "ring", "halving-doubling", "tree", "hierarchical", "coordinator", "native"}));
  fields.push_back(one_of<TransportName>(
      "transport",
      "Between ranks: shm, their host's memory; mpi, an installed Open MPI or MPICH (auto: shm)",
      &Options::transport,
      {{"auto", TransportName::automatic},
       {"shm", TransportName::shm},
       {"mpi", TransportName::mpi}},
      {}));
  fields.push_back(switched(
      "reproducible", "Same bits on 1, 2, 4 and 8 ranks; one thread per rank unless --threads",
      &Options::reproducible));
  fields.push_back(whole("threads",
                         "Compute threads of a rank (OMP_NUM_THREADS, else cores / ranks)",
                         &Options::threads, {1, 1024}));
  fields.push_back(deadline());
  fields.push_back(device_memory());
  fields.push_back(
      switched("force", "Start a run even though it does not fit into memory", &Options::force));
}

void add_checkpoints(Fields& fields) {
  fields.push_back(text("checkpoint", "DIR",
                        "Folder for checkpoints, one folder in it per saved step; the last step is "
                        "always saved (none)",
                        &Options::checkpoint));
  fields.push_back(whole("checkpoint-every", "Steps between checkpoints; 0: only at the end (0)",
                         &Options::checkpoint_every, {0, kMany}));
  fields.push_back(
      whole("keep", "Newest checkpoints to keep; 0: all (0)", &Options::keep, {0, kMany}));
  fields.push_back(switched("resume",
                            "Go on from the newest step in --checkpoint, or from 0 when there is "
                            "none; --steps stays the total, report.json tells of this run's steps",
                            &Options::resume));
  fields.push_back(whole("stop-at", "Save at this step and stop; the schedule hangs on --steps",
                         &Options::stop_at, {0, kMany}));
}

void add_results(Fields& fields) {
  fields.push_back(whole("eval-every", "Steps between validations; 0: only at the end (0)",
                         &Options::eval_every, {0, kMany}));
  fields.push_back(whole("eval-batches", "Micro-batches of one validation; 0: none (8)",
                         &Options::eval_batches, {0, kMany}));
  fields.push_back(sample());
  fields.push_back(text("run", "DIR",
                        "Folder for config, metrics and report (runs/DATE-MODEL-STAGE)",
                        &Options::run_directory));
  fields.push_back(text("report", "FILE", "Where a copy of report.json goes", &Options::report));
  fields.push_back(text("trace", "FILE",
                        "Where a trace of steps 2 to 5 goes, and to trace.json of the run folder; "
                        "open it in ui.perfetto.dev",
                        &Options::trace));
}

}  // namespace

std::span<const OptionField> option_fields() {
  static const Fields kFields = [] {
    Fields fields;
    add_model_and_data(fields);
    add_steps(fields);
    add_optimizer(fields);
    add_communication(fields);
    add_checkpoints(fields);
    add_results(fields);
    return fields;
  }();
  return kFields;
}

std::span<const NotBuiltOption> options_not_built() {
  static const std::vector<NotBuiltOption> kOptions{
      {"hosts", "all ranks run on this host"},
      {"prefetch", "leave it out: on one host zero3 reads parameters in place and gathers nothing"},
      {"shard-size", "use --stage ddp, which shards nothing"},
      {"max-staleness", "use --stage ddp, whose gradients are never stale"},
      {"straggle", "leave it out"},
      {"noise-scale", "leave it out"},
      {"allow-partial", "leave it out"},
  };
  return kOptions;
}

std::string quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result.append("\\").append(1, letter);
    } else if (code < 0x20 || code == 0x7f) {
      result.append("\\u00").append(1, kDigits[code >> 4]).append(1, kDigits[code & 15]);
    } else {
      result.append(1, letter);
    }
  }
  return result + "\"";
}

}  // namespace lockstep::train
