// train::run() with what no command line can ask for: ranks whose memory fails.
#include "support/ranks.h"
#include "support/temporary_folder.h"
#include "train/flip_bit.h"
#include "train/run.h"
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace lockstep::train {
namespace {

// Two ranks train two steps into `folder`/run; `change` is then called with each rank.
std::vector<test::RankResult> run_two_ranks(const test::TemporaryFolder& folder,
                                            PrecisionName precision,
                                            const std::function<void(Trainer&, int)>& change,
                                            Options options = {}) {
  options.data = folder.write("text", std::string(20'000, 'a'));
  options.run_directory = folder.file("run");
  options.precision = precision;
  options.ranks = 2;
  options.sequence = 16;
  options.steps = 2;
  options.eval_batches = 1;
  ::setenv("LOCKSTEP_CACHE", folder.file("cache").c_str(), 1);
  return test::run_ranks(2, [&](Group& world) {
    const int rank = world.rank();
    const int status =
        run(options, std::move(world), [&](Trainer& trainer) { change(trainer, rank); });
    return std::vector<double>{static_cast<double>(status)};
  });
}

TEST(Run, OneFlippedBitOfAWeightOnRank1FailsTheRun) {
  for (const PrecisionName precision : {PrecisionName::f32, PrecisionName::bf16}) {
    const test::TemporaryFolder folder;
    const auto results = run_two_ranks(folder, precision, [](Trainer& trainer, int rank) {
      if (rank == 1) {
        test::flip_bit(trainer.model(), "transformer.h.1.mlp.c_fc.weight");
      }
    });
    for (const auto& result : results) {
      EXPECT_EQ(result.error.find("replicas differ after training: rank 0 has "), 0u)
          << result.error;
    }
    EXPECT_FALSE(std::filesystem::exists(folder.file("run/report.json")));
    EXPECT_FALSE(std::filesystem::exists(folder.file("run/weights.safetensors")));
  }
}

TEST(Run, TheSameRunWithoutTheFlipEndsWell) {
  const test::TemporaryFolder folder;
  for (const auto& result : run_two_ranks(folder, PrecisionName::f32, [](Trainer&, int) {})) {
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.values, std::vector<double>{0.0});
  }
  EXPECT_TRUE(std::filesystem::exists(folder.file("run/report.json")));
}

TEST(Run, ALossThatIsLostFailsTheRunAndLeavesItsReport) {
  const test::TemporaryFolder folder;
  Options options;
  options.learning_rate = 1e30;
  options.warmup = 0;
  for (const auto& result : run_two_ranks(
           folder, PrecisionName::f32, [](Trainer&, int) {}, options)) {
    EXPECT_EQ(result.error.find("training diverged: the last loss is not finite"), 0u)
        << result.error;
  }
  EXPECT_TRUE(std::filesystem::exists(folder.file("run/report.json")));
}

}  // namespace
}  // namespace lockstep::train
