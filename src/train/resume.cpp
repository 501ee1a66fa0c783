#include "train/resume.h"

#include "checkpoint/manifest.h"
#include "checkpoint/step_folders.h"
#include "lockstep/error.h"
#include "train/option_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

// Another value would make it another run.
constexpr std::array<std::string_view, 4> kMeaning{"model", "tokenizer", "seed", "seq"};
// Another value is the user's decision, and worth a line.
constexpr std::array<std::string_view, 15> kTold{
    "stage",        "ranks",     "data",        "micro-batch", "accumulate", "accumulate-in",
    "steps",        "precision", "dropout",     "optimizer",   "lr",         "warmup",
    "weight-decay", "clip",      "reproducible"};

std::string value_of(const OptionField& field, const Options& options) {
  return field.toml(options);
}

std::string saved_value(const Json& state, std::string_view name) {
  const auto options = state.find("options");
  return options == state.end() ? "" : options->value(std::string(name), "");
}

Json parsed(const std::string& path, const std::string& state) {
  Json json = Json::parse(state, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("options") || !json.contains("position")) {
    throw UsageError("--resume: " + path +
                     " was not saved by lockstep train; load it with the program that saved it");
  }
  return json;
}

std::int64_t sequences_per_step(const Options& options) {
  return options.leaves() * options.micro_batch;
}

void check_batch(const std::string& path, const Json& state, const Options& options) {
  const std::int64_t saved = state.at("position").value("sequences_per_step", std::int64_t{0});
  const std::int64_t now = sequences_per_step(options);
  if (saved != now) {
    throw UsageError("--resume: " + path + " was trained with " + std::to_string(saved) +
                     " sequences per step, --ranks x --accumulate x --micro-batch makes " +
                     std::to_string(now) + "; change one of them so that it is " +
                     std::to_string(saved));
  }
}

// The tree that gradients add in hangs on the micro-batches: with other ones the bits would differ.
void check_leaves(const std::string& path, const Json& state, const Options& options) {
  const std::string saved = saved_value(state, "micro-batch");
  const std::string now = std::to_string(options.micro_batch);
  if (options.reproducible && saved != now) {
    throw UsageError("--resume: " + path + " was trained with --micro-batch " + saved + ", got " +
                     now + ", whose bits differ; give --micro-batch " + saved +
                     " and more or less --accumulate, or leave --reproducible out");
  }
}

void check_needs_folder(const Options& options) {
  const auto refuse = [](const std::string& option) {
    throw UsageError(option + ": needs --checkpoint DIR, the folder that checkpoints are in");
  };
  if (options.resume) {
    refuse("--resume");
  }
  if (options.checkpoint_every > 0) {
    refuse("--checkpoint-every");
  }
  if (options.keep > 0) {
    refuse("--keep");
  }
  if (options.stop_at) {
    refuse("--stop-at");
  }
}

void check_steps(const Options& options, const ResumePoint& point) {
  const std::string at = "--resume: " + point.path + " is at step " + std::to_string(point.step);
  if (point.step > options.steps) {
    throw UsageError(at + ", --steps " + std::to_string(options.steps) +
                     " is the total; give --steps of at least " + std::to_string(point.step));
  }
  if (options.stop_at && *options.stop_at < point.step) {
    throw UsageError(at + ", behind --stop-at " + std::to_string(*options.stop_at) +
                     "; give --stop-at of at least " + std::to_string(point.step));
  }
}

}  // namespace

std::string run_state(const Options& options, const TextIdentity& text, std::int64_t step) {
  Json saved = Json::object();
  for (const OptionField& field : option_fields()) {
    if (const std::string value = value_of(field, options); !value.empty()) {
      saved[field.name] = value;
    }
  }
  const std::int64_t sequences = step * sequences_per_step(options);
  Json json;
  json["options"] = std::move(saved);
  json["text"] = {{"tokens", text.tokens}, {"windows", text.windows}, {"xxh3_128", text.hash}};
  json["position"] = {{"seed", options.seed},
                      {"epoch", text.windows > 0 ? sequences / text.windows : 0},
                      {"leaves", step * options.leaves()},
                      {"sequences", sequences},
                      {"sequences_per_step", sequences_per_step(options)}};
  // Paths need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void check_same_run(const std::string& path, const std::string& state, const Options& options) {
  const Json json = parsed(path, state);
  for (const OptionField& field : option_fields()) {
    if (std::ranges::find(kMeaning, field.name) == kMeaning.end()) {
      continue;
    }
    const std::string saved = saved_value(json, field.name);
    const std::string now = value_of(field, options);
    if (saved != now) {
      throw UsageError("--resume: " + path + " was trained with --" + field.name + " " + saved +
                       ", got " + now + "; give --" + field.name + " " + saved +
                       ", or start in another --checkpoint folder");
    }
  }
  check_batch(path, json, options);
  check_leaves(path, json, options);
}

void check_same_text(const std::string& path, const std::string& state, const TextIdentity& text) {
  const Json json = parsed(path, state);
  const Json saved = json.value("text", Json::object());
  const std::string hash = saved.value("xxh3_128", "");
  const std::int64_t tokens = saved.value("tokens", std::int64_t{0});
  if (hash != text.hash || tokens != text.tokens) {
    throw UsageError("--resume: " + path + " was trained on a text of " + std::to_string(tokens) +
                     " tokens (xxh3_128 " + hash + "), --data has " + std::to_string(text.tokens) +
                     " (" + text.hash + "); give the text it was trained on");
  }
}

std::string changed_options(const std::string& state, const Options& options) {
  const Json json = Json::parse(state);
  std::string text;
  for (const OptionField& field : option_fields()) {
    const std::string saved = saved_value(json, field.name);
    const std::string now = value_of(field, options);
    if (saved != now && std::ranges::find(kTold, field.name) != kTold.end()) {
      const std::string standard = "the default";
      text += (text.empty() ? "--" : ", --") + field.name + " " + (now.empty() ? standard : now) +
              " (was " + (saved.empty() ? standard : saved) + ")";
    }
  }
  return text;
}

std::optional<ResumePoint> find_resume_point(const Options& options) {
  if (!options.resume) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> steps = checkpoint::saved_steps(options.checkpoint);
  if (steps.empty()) {
    return std::nullopt;
  }
  const ResumePoint point{options.checkpoint + "/" + checkpoint::step_folder_name(steps.back()),
                          steps.back()};
  check_same_run(point.path, checkpoint::read_manifest(point.path).user, options);
  check_steps(options, point);
  return point;
}

void check_checkpoints(const Options& options) {
  if (options.checkpoint.empty()) {
    check_needs_folder(options);
    return;
  }
  if (options.stop_at && *options.stop_at > options.steps) {
    throw UsageError("--stop-at " + std::to_string(*options.stop_at) +
                     ": the run ends at --steps " + std::to_string(options.steps) +
                     "; give at most that");
  }
  if (options.resume) {
    find_resume_point(options);
    return;
  }
  const std::vector<std::int64_t> steps = checkpoint::saved_steps(options.checkpoint);
  if (!steps.empty()) {
    throw UsageError("--checkpoint " + options.checkpoint + ": holds step " +
                     std::to_string(steps.back()) +
                     " of a run; add --resume to go on from it, or name another folder");
  }
}

}  // namespace lockstep::train
