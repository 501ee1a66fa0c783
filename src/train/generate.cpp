#include "train/generate.h"

#include "data/utf8.h"
#include "lockstep/error.h"
#include "models/configuration_file.h"
#include "models/registry.h"
#include "train/weights.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace lockstep::train {
namespace {

// The logits of the token behind `seen`: [vocabulary], in fp32. Rows of the model beyond the
// tokenizer's vocabulary mean nothing here.
std::vector<double> next_logits(models::LanguageModel& model, std::span<const data::TokenId> seen,
                                std::int64_t vocabulary) {
  const auto length = static_cast<std::int64_t>(seen.size());
  const torch::Tensor tokens = torch::empty({1, length}, torch::kInt64);  // [1, T]
  std::ranges::copy(seen, tokens.mutable_data_ptr<std::int64_t>());
  const torch::Tensor last = model.forward(tokens)
                                 .select(1, length - 1)
                                 .select(0, 0)
                                 .narrow(0, 0, vocabulary)
                                 .to(torch::kFloat64)
                                 .contiguous();
  const std::span values(last.const_data_ptr<double>(), static_cast<std::size_t>(vocabulary));
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) {
    throw Error(
        "the model's logits are not finite: its training diverged or its weights are damaged");
  }
  return {values.begin(), values.end()};
}

// An index drawn with probability proportional to exp(logit / temperature).
std::size_t draw(std::vector<double> logits, double temperature, std::mt19937_64& random) {
  const double highest = *std::ranges::max_element(logits);
  if (temperature <= 0) {
    return static_cast<std::size_t>(std::ranges::find(logits, highest) - logits.begin());
  }
  double total = 0;
  for (double& value : logits) {
    total += value = std::exp((value - highest) / temperature);
  }
  // 53 random bits; the standard distributions may differ between libraries.
  double left = static_cast<double>(random() >> 11) * 0x1p-53 * total;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    left -= logits[i];
    if (left < 0) {
      return i;
    }
  }
  return logits.size() - 1;
}

// C1 controls (U+0080 … U+009F) steer terminals too.
bool is_control(char32_t code) {
  return code < 0x20 ? code != U'\n' && code != U'\t' : code >= 0x7f && code < 0xa0;
}

std::string escaped(char byte) {
  char text[5];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(byte));
  return text;
}

// The tokenizer that the weights were trained with; of a file the run folder has a copy.
std::shared_ptr<const data::Tokenizer> tokenizer_of(const std::string& run_directory,
                                                    const WeightsOrigin& origin) {
  const std::string own = run_directory + "/tokenizer.json";
  const std::string spec = std::filesystem::exists(own) ? own : origin.tokenizer;
  auto tokenizer = data::open_tokenizer(spec);
  if (tokenizer->identity() != origin.tokenizer_identity) {
    throw UsageError("--run " + run_directory + ": was trained with another state of " + spec +
                     "; put that state back");
  }
  return tokenizer;
}

}  // namespace

std::string sample_text(models::LanguageModel& model, const data::Tokenizer& tokenizer,
                        std::string_view prompt, const Sampling& sampling) {
  const torch::NoGradGuard no_gradients;
  const bool was_training = model.is_training();
  model.eval();
  std::mt19937_64 random(sampling.seed);
  std::vector<data::TokenId> ids = tokenizer.encode(prompt.empty() ? "\n" : prompt);
  std::string text;
  const auto window = static_cast<std::size_t>(std::min(sampling.window, model.facts().context));
  const auto wanted = static_cast<std::size_t>(sampling.bytes);
  // A token may stand for no bytes at all, so their number is bounded too.
  for (std::size_t drawn = 0; drawn < wanted && text.size() < wanted; ++drawn) {
    const auto seen = std::span(ids).last(std::min(ids.size(), window));
    const auto logits = next_logits(model, seen, tokenizer.vocabulary());
    ids.push_back(static_cast<data::TokenId>(draw(logits, sampling.temperature, random)));
    text += tokenizer.decode(std::span(ids).last(1));
  }
  model.train(was_training);
  return text;
}

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto character = data::first_character(bytes);
    const std::string_view written = bytes.substr(0, character ? character->bytes : 1);
    if (!character || is_control(character->code)) {
      for (const char byte : written) {
        text += escaped(byte);
      }
    } else {
      text += written;
    }
    bytes.remove_prefix(written.size());
  }
  return text;
}

int generate(const GenerateOptions& options) {
  const checkpoint::SafetensorsFile file = open_weights(options.run_directory);
  const WeightsOrigin origin = origin_of(file);
  const auto tokenizer = tokenizer_of(options.run_directory, origin);
  const std::shared_ptr<models::LanguageModel> model =
      models::make_model(models::parse_configuration(origin.configuration, file.path()));
  load_weights(file, *model);
  const std::string text = sample_text(*model, *tokenizer, options.prompt,
                                       {.bytes = options.bytes,
                                        .temperature = options.temperature,
                                        .seed = options.seed,
                                        .window = origin.sequence});
  const std::string shown = printable(options.prompt) + printable(text) + "\n";
  std::fputs(shown.c_str(), stdout);
  return 0;
}

}  // namespace lockstep::train
