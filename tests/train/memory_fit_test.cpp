#include "train/memory_fit.h"

#include "comm/memory_limits.h"
#include "lockstep/error.h"
#include "models/catalogue.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::train {
namespace {

Options gpt2_124m(Stage stage) {
  Options options;
  options.model = "gpt2-124m";
  options.stage = stage;
  options.ranks = 4;
  return options;
}

std::string refusal(const Options& options, std::int64_t bytes) {
  return test::error_of<UsageError>([&] { check_fits(options, {bytes, "there are few"}); });
}

// 124,439,808 parameters of 16 bytes are 1.99 GB, 8 + 8/4 are 1.24, 16/4 are .50.
TEST(MemoryFit, NamesTheNumbersAndTheSmallestStageThatFits) {
  EXPECT_NO_THROW(check_fits(gpt2_124m(Stage::ddp), {2'000'000'000, "enough"}));
  EXPECT_EQ(refusal(gpt2_124m(Stage::ddp), 1'980'000'000),
            "--stage ddp: gpt2-124m needs 1.99 GB per rank without activations (497.76 "
            "MB parameters, 497.76 MB gradients, 995.52 MB optimizer, 0 B buckets in flight), but "
            "there are few; the smallest stage that fits is zero1 (1.24 GB): use --stage zero1, or "
            "--force to try");
  EXPECT_NE(refusal(gpt2_124m(Stage::zero1), 1'200'000'000).find("use --stage zero2"),
            std::string::npos);
  EXPECT_NE(refusal(gpt2_124m(Stage::zero1), 900'000'000).find("use --stage zero3"),
            std::string::npos);
  EXPECT_NO_THROW(check_fits(gpt2_124m(Stage::zero3), {900'000'000, "enough"}));
}

// A sixteenth of 12 blocks of 28.4 MB and the whole of what is outside, 157.5 MB, which is there
// twice when it moves; and a sixteenth of the .50 GB that all ends in.
TEST(MemoryFit, CountsTheModelWhileItIsMade) {
  Options options = gpt2_124m(Stage::zero3);
  options.ranks = 16;
  EXPECT_NO_THROW(check_fits(options, {368'000'000, "enough"}));
  const std::string said = refusal(options, 366'000'000);
  EXPECT_NE(said.find("needs 367."), std::string::npos) << said;
  EXPECT_NE(said.find("while the model is made"), std::string::npos) << said;
  EXPECT_NE(said.find("no stage fits: use a smaller model or fewer --ranks"), std::string::npos)
      << said;
}

// Blocks that move as one are drawn one by one.
TEST(MemoryFit, CountsUnitsThatMoveTogether) {
  Options options = gpt2_124m(Stage::zero3);
  options.ranks = 16;
  options.unit_blocks = 12;
  EXPECT_NO_THROW(check_fits(options, {551'000'000, "enough"}));
  EXPECT_NE(refusal(options, 549'000'000).find("needs 550."), std::string::npos);
}

// A folder's weights are read into the whole model.
TEST(MemoryFit, CountsAFoldersWeightsOnEveryRank) {
  const test::TemporaryFolder folder;
  Options options = gpt2_124m(Stage::zero3);
  options.model = folder.path();
  options.ranks = 16;
  folder.write("config.json",
               models::configuration_text("gpt2-124m", models::config_of("gpt2-124m", 50'257)));
  const std::string said = refusal(options, 500'000'000);
  EXPECT_NE(said.find("needs 528.87 MB"), std::string::npos) << said;
}

// Beside a device of 1 MB nothing may read as 0.00 GB.
TEST(MemoryFit, SmallNumbersKeepTheirDigits) {
  Options options = gpt2_124m(Stage::zero3);
  options.model = "gpt2-tiny";
  options.device_memory = 1'000'000;
  const std::string said =
      test::error_of<UsageError>([&] { check_fits(options, memory_budget(options)); });
  EXPECT_NE(said.find("but --device-memory is 1.00 MB"), std::string::npos) << said;
  EXPECT_NE(said.find("use a smaller model or more --ranks"), std::string::npos) << said;
  EXPECT_EQ(said.find("0.00"), std::string::npos) << said;
}

TEST(MemoryFit, ForceTriesAnyway) {
  Options options = gpt2_124m(Stage::ddp);
  options.force = true;
  EXPECT_NO_THROW(check_fits(options, {1, "nothing"}));
}

TEST(MemoryFit, TheBudgetIsGivenOrTheHostsForEachRank) {
  Options options = gpt2_124m(Stage::ddp);
  options.device_memory = 80'000'000'000;
  EXPECT_EQ(memory_budget(options).bytes, 80'000'000'000);
  EXPECT_EQ(memory_budget(options).text, "--device-memory is 80.00 GB");
  options.device_memory.reset();
  const std::int64_t before = comm::memory_room().bytes;
  const MemoryBudget budget = memory_budget(options);
  // What the host has left changes a little all the time.
  EXPECT_NEAR(static_cast<double>(budget.bytes), static_cast<double>(before) / 4,
              static_cast<double>(before) / 40);
  EXPECT_NE(budget.text.find("for 4)"), std::string::npos) << budget.text;
}

}  // namespace
}  // namespace lockstep::train
