// Text from a trained model.
#pragma once

#include "data/tokenizer.h"
#include "models/language_model.h"
#include "train/options.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::train {

struct Sampling {
  std::int64_t bytes = 200;  // to generate
  double temperature = 1.0;  // divides the logits; 0 takes the likeliest byte each time
  std::uint64_t seed = 1;    // of this sampling only; LibTorch's generator is left alone
  // The most tokens that the next one is drawn from; the model's context when that is less. A model
  // trained on shorter sequences knows nothing of the positions behind them.
  std::int64_t window = 1024;
};

// Tokens that follow `prompt` (a line break when it is empty), each drawn given those before it, as
// text: as many as make `sampling.bytes` bytes or more, but no more tokens than that. The model is
// left in training mode or not, as it was.
std::string sample_text(models::LanguageModel& model, const data::Tokenizer& tokenizer,
                        std::string_view prompt, const Sampling& sampling);

// Bytes as a terminal may safely show them: UTF-8, line breaks and tabs as they are, anything else
// as \xNN.
std::string printable(std::string_view bytes);

// The command: reads weights.safetensors of the run folder, prints prompt and
// continuation. Returns the exit code. Throws UsageError for a folder that holds no finished run.
int generate(const GenerateOptions& options);

}  // namespace lockstep::train
