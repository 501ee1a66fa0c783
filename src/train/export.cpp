#include "train/export.h"

#include "checkpoint/safetensors.h"
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

// Files of a tokenizer that transformers looks for beside the weights.
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "tokenizer_config.json"};

void copy_tokenizer(const std::string& from, const std::string& to) {
  for (const std::string name : kTokenizerFiles) {
    if (!fs::exists(from + "/" + name)) {
      continue;
    }
    std::error_code error;
    fs::copy_file(from + "/" + name, to + "/" + name, fs::copy_options::overwrite_existing, error);
    if (error) {
      throw SystemError(to + "/" + name + ": can't be written: " + error.message());
    }
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
  copy_tokenizer(options.run_directory, options.folder);
  std::printf("%s: config.json, model.safetensors (f32)\n", options.folder.c_str());
  return 0;
}

}  // namespace lockstep::train
