// A finished run's model as a folder that Hugging Face's transformers reads.
#pragma once

#include "train/options.h"

namespace lockstep::train {

// The command: writes config.json, model.safetensors and the files of the run's tokenizer (none for
// bytes) into options.folder, and prints where. Returns the exit code. Throws UsageError for a
// folder that holds no finished run, SystemError for what can't be written.
int export_run(const ExportOptions& options);

}  // namespace lockstep::train
