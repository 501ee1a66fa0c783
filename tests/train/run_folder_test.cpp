#include "train/run_folder.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace lockstep::train {
namespace {

using test::TemporaryFolder;

TEST(RunFolder, HoldsConfigAndOneLinePerStep) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.file("deep/run");
  RunFolder run(options);
  run.add_metrics({{"step", 0}, {"train/loss", 0.1}});
  EXPECT_EQ(test::contents_of(run.file("metrics.jsonl")), "{\"step\":0,\"train/loss\":0.1}\n");
  run.add_metrics({{"step", 1}});
  EXPECT_EQ(test::contents_of(run.file("config.toml")), to_toml(options));
  EXPECT_NE(test::contents_of(run.file("metrics.jsonl")).find("\n{\"step\":1}\n"),
            std::string::npos);
}

TEST(RunFolder, StartsMetricsAfresh) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.path();
  folder.write("metrics.jsonl", "of an earlier run\n");
  const RunFolder run(options);
  EXPECT_EQ(test::contents_of(run.file("metrics.jsonl")), "");
}

TEST(RunFolder, KeepsTheMetricsOfStepsBeforeTheOneItGoesOnFrom) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.path();
  const std::string before = "{\"step\":0}\n{\"step\":1}\n{\"step\":2,\"eval/loss\":1.5}\n";
  folder.write("metrics.jsonl",
               before + "{\"step\":2}\n{\"step\":3,\"eval/loss\":1.4}\nno JSON\n{\"step\":1");
  RunFolder run(options, 2);
  EXPECT_EQ(test::contents_of(run.file("metrics.jsonl")), before);
  run.add_metrics({{"step", 2}, {"train/loss", 0.5}});
  EXPECT_EQ(test::contents_of(run.file("metrics.jsonl")),
            before + "{\"step\":2,\"train/loss\":0.5}\n");
}

TEST(RunFolder, BelongsToOneRunAtATime) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.path();
  {
    const RunFolder first(options);
    EXPECT_EQ(test::error_of<UsageError>([&] { const RunFolder second(options); }),
              "--run " + folder.path() + ": another run is writing to it; choose another folder");
  }
  const RunFolder later(options);
}

TEST(RunFolder, GivesTensorboardTheDocumentedTags) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.path();
  RunFolder run(options);
  run.add_metrics({{"step", 7}, {"train/loss", 0.1}, {"comm/sent", 3}, {"memory/pss_peak", 4}});
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      events = test::contents_of(entry.path().string());
    }
  }
  EXPECT_NE(events.find("train/loss"), std::string::npos);
  EXPECT_NE(events.find("memory/pss_peak"), std::string::npos);
  EXPECT_EQ(events.find("comm/sent"), std::string::npos);
}

TEST(RunFolder, NamesItselfAfterDateModelAndStage) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const RunFolder one{Options{}};
  const RunFolder other{Options{}};
  std::filesystem::current_path(before);
  EXPECT_EQ(one.path().find("runs/20"), 0u);
  EXPECT_NE(one.path().find("-gpt2-tiny-ddp"), std::string::npos);
  EXPECT_NE(one.path(), other.path());
}

TEST(RunFolder, SaysWhatCanNotBeMade) {
  const TemporaryFolder folder;
  Options options;
  options.run_directory = folder.write("file", "") + "/run";
  EXPECT_EQ(test::error_of<SystemError>([&] { RunFolder run(options); }),
            "--run " + options.run_directory + ": can't be made: Not a directory");
}

}  // namespace
}  // namespace lockstep::train
