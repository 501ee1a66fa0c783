#include "train/export.h"

#include "checkpoint/safetensors.h"
#include "data/gpt2_files.h"
#include "lockstep/error.h"
#include "models/configuration_file.h"
#include "models/hugging_face.h"
#include "models/registry.h"
#include "train/weights.h"

#include <system_error>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

void place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, error);
  if (error) {
    throw SystemError(to.string() + ": can't be written: " + error.message());
  }
}

// Under the names that transformers looks for; the run folder keeps a copy of a tokenizer's file.
void copy_tokenizer(const ExportOptions& options, const WeightsOrigin& origin) {
  const fs::path target = options.folder;
  const fs::path kept = fs::path(options.run_directory) / "tokenizer.json";
  if (origin.tokenizer == "gpt2") {
    place(data::gpt2_folder() + "/encoder.json", target / "vocab.json");
    place(data::gpt2_folder() + "/vocab.bpe", target / "merges.txt");
  } else if (fs::exists(kept)) {
    place(kept, target / "tokenizer.json");
  }
}

}  // namespace

int export_run(const ExportOptions& options) {
  const checkpoint::SafetensorsFile file = open_weights(options.run_directory);
  const WeightsOrigin origin = origin_of(file);
  const std::shared_ptr<models::LanguageModel> model =
      models::make_model(models::parse_configuration(origin.configuration, file.path()));
  load_weights(file, *model);
  models::export_folder(options.folder, *model, origin.configuration);
  copy_tokenizer(options, origin);
  std::printf("%s: config.json, model.safetensors (f32)\n", options.folder.c_str());
  return 0;
}

}  // namespace lockstep::train
