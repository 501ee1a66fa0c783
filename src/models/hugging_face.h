// A model's weights in a folder as Hugging Face's transformers reads and writes it: config.json and
// model.safetensors, or shards listed in model.safetensors.index.json.
//
// Names may lack the prefix ("transformer.", "model.") that a model saved without its head lacks.
// GPT-2's files hold its four projections transposed, [in, out].
#pragma once

#include "models/language_model.h"

#include <string>

namespace lockstep::models {

// Copies the folder's weights (f32, f16 or bf16) into an f32 model of the folder's configuration,
// in place. Buffers that old files hold (attn.bias, attn.masked_bias, rotary_emb.inv_freq) are
// passed over, and so is a tied head that equals its embedding. Throws UsageError, one line naming
// everything that is missing, of another shape or not of this model (the model's weights are then
// undefined), and Error or SystemError when a file can't be read.
void load_folder(const std::string& folder, LanguageModel& model);

// Writes the model's weights in f32 as model.safetensors and `configuration` as config.json; the
// folder is made when it does not exist. Throws SystemError naming what can't be written.
void export_folder(const std::string& folder, const LanguageModel& model,
                   const std::string& configuration);

}  // namespace lockstep::models
