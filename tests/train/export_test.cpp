#include "train/export.h"

#include "lockstep/error.h"
#include "models/configuration_file.h"
#include "models/hugging_face.h"
#include "models/registry.h"
#include "support/temporary_folder.h"
#include "train/weights.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

using test::TemporaryFolder;

// A run folder as training leaves it, of a small model that it returns.
std::shared_ptr<models::LanguageModel> finished_run(const TemporaryFolder& run,
                                                    const models::ModelConfig& config) {
  torch::manual_seed(1);
  auto model = models::make_model(config);
  Group alone = Group::alone();
  const Parallel parallel(model, alone, {.stage = Stage::single});
  WeightsFile file(run.file("weights.safetensors"),
                   {"small", 4, models::configuration_text(config), "bytes", 0}, *model);
  digest_weights(parallel, &file);
  file.publish();
  return model;
}

TEST(Export, WritesTheModelOfTheRun) {
  const TemporaryFolder run;
  const TemporaryFolder target;
  const std::string folder = target.file("model");
  const auto model = finished_run(
      run, models::Gpt2Config{.layers = 1, .width = 8, .heads = 2, .context = 4, .vocabulary = 5});
  run.write("tokenizer.json", "{}");
  EXPECT_EQ(export_run({.run_directory = run.path(), .folder = folder}), 0);
  EXPECT_EQ(test::contents_of(folder + "/tokenizer.json"), "{}");
  const auto again = models::make_model(models::config_of(folder, 0));
  models::load_folder(folder, *again);
  const auto expected = model->named_parameters();
  for (const auto& item : again->named_parameters()) {
    EXPECT_TRUE(torch::equal(item.value(), expected[item.key()])) << item.key();
  }
}

TEST(Export, NeedsAFinishedRun) {
  const TemporaryFolder run;
  EXPECT_NE(test::error_of<UsageError>([&] {
              export_run({.run_directory = run.path(), .folder = run.file("model")});
            }).find("has no weights.safetensors"),
            std::string::npos);
  EXPECT_EQ(run.entries(), 0);
}

}  // namespace
}  // namespace lockstep::train
