#include "train/trainer.h"

#include "lockstep/error.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"
#include "train/prediction.h"
#include "train/weights.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace lockstep::train {
namespace {

using test::TemporaryFolder;

// A text with structure that a few steps can learn.
std::string some_text(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    text += "the quick brown fox jumps over the lazy dog. ";
  }
  text.resize(bytes);
  return text;
}

struct Workspace {
  TemporaryFolder folder;
  Options options;

  explicit Workspace(std::size_t bytes = 20'000) {
    ::setenv("LOCKSTEP_CACHE", folder.file("cache").c_str(), 1);
    options.data = folder.write("text", some_text(bytes));
    options.stage = Stage::single;
    options.sequence = 16;
    options.micro_batch = 2;
    options.steps = 10;
    options.eval_batches = 3;
    options.learning_rate = 1e-2;
  }
  ~Workspace() { ::unsetenv("LOCKSTEP_CACHE"); }
};

TEST(Trainer, LearnsAndCounts) {
  Workspace work;
  work.options.accumulate = 2;
  Group alone = Group::alone();
  Trainer trainer(work.options, alone);
  const StepResult first = trainer.step();
  EXPECT_NEAR(first.loss, 5.55, 0.2);  // ln 256
  StepResult last;
  while (trainer.steps_done() < work.options.steps) {
    last = trainer.step();
  }
  EXPECT_LT(last.loss, first.loss - 1);
  EXPECT_EQ(last.step, 9);
  EXPECT_EQ(last.forwards, 2);
  EXPECT_EQ(last.traffic.sent, 0);
  EXPECT_GT(last.grad_norm, 0);
  EXPECT_GT(last.ms, 0);
}

TEST(Trainer, SgdWithMomentumLearnsAndHoldsWhatIsPredicted) {
  Workspace work;
  work.options.optimizer = OptimizerName::sgd;
  work.options.momentum = 0.9;
  work.options.learning_rate = 0.1;
  Group alone = Group::alone();
  Trainer trainer(work.options, alone);
  const StepResult first = trainer.step();
  StepResult last;
  while (trainer.steps_done() < work.options.steps) {
    last = trainer.step();
  }
  EXPECT_LT(last.loss, first.loss - 0.2);
  EXPECT_EQ(trainer.parallel().held().optimizer,
            predict(trainer.model().configuration(), work.options).ledger.optimizer);
}

TEST(Trainer, TellsTheMomentsOfAStep) {
  Workspace work;
  work.options.accumulate = 2;
  Group alone = Group::alone();
  Trainer trainer(work.options, alone);
  std::vector<Moment> moments;
  trainer.step([&](Moment moment) { moments.push_back(moment); });
  const std::vector<Moment> once{Moment::before_forward, Moment::after_forward,
                                 Moment::after_backward};
  std::vector<Moment> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  twice.push_back(Moment::after_update);
  EXPECT_EQ(moments, twice);
}

TEST(Trainer, ValidatesWithoutChangingAnything) {
  Workspace work;
  work.options.dropout = 0.5;
  Group alone = Group::alone();
  Trainer trainer(work.options, alone);
  const double loss = trainer.validate(alone);
  EXPECT_NEAR(loss, 5.55, 0.2);
  EXPECT_EQ(trainer.validate(alone), loss);
  EXPECT_TRUE(trainer.model().is_training());
}

TEST(Trainer, ValidatesOnWhatThereIs) {
  Workspace work(400);  // 40 bytes of validation: two windows
  work.options.eval_batches = 100;
  Group alone = Group::alone();
  EXPECT_NEAR(Trainer(work.options, alone).validate(alone), 5.55, 0.3);
}

TEST(Trainer, ValidationCountsEachWindowOnceInBatchesOfAnySize) {
  Workspace work(850);  // 85 bytes of validation: five windows
  work.options.eval_batches = 100;
  Group alone = Group::alone();
  work.options.micro_batch = 1;
  const double loss = Trainer(work.options, alone).validate(alone);
  for (const std::int64_t size : {2, 3, 4, 5}) {
    work.options.micro_batch = size;
    EXPECT_NEAR(Trainer(work.options, alone).validate(alone), loss, 1e-5) << size;
  }
}

TEST(Trainer, ValidationHasTheSameBitsOnAnyNumberOfRanks) {
  Workspace work;
  work.options.eval_batches = 5;
  std::vector<double> losses;
  for (const int ranks : {1, 2, 3}) {
    work.options.ranks = ranks;
    work.options.stage = Stage::ddp;
    const auto results = test::run_ranks(ranks, [&](Group& world) {
      at::set_num_threads(1);
      Trainer trainer(work.options, world);
      Group records = std::move(*world.split(0, world.rank()));
      return std::vector<double>{trainer.validate(records)};
    });
    for (const auto& result : results) {
      ASSERT_EQ(result.error, "");
      losses.push_back(result.values[0]);
    }
  }
  for (const double loss : losses) {
    EXPECT_EQ(loss, losses[0]);
  }
}

TEST(Trainer, RefusesDataThatCanNotBeTrainedOn) {
  Workspace work(100);
  Group alone = Group::alone();
  const auto refusal = [&] {
    return test::error_of<UsageError>([&] { Trainer trainer(work.options, alone); });
  };
  work.options.sequence = 90;
  EXPECT_NE(refusal().find("its training part has 90 tokens"), std::string::npos);
  work.options.sequence = 10;
  EXPECT_NE(refusal().find("its validation part has 10 tokens"), std::string::npos);
  work.options.sequence = 300;
  EXPECT_NE(refusal().find("training part"), std::string::npos);
  work.options.data = work.folder.file("none");
  EXPECT_NE(refusal().find("can't be opened"), std::string::npos);
}

TEST(Trainer, RefusesMoreTokensThanTheModelSees) {
  Workspace work;
  work.options.sequence = 257;
  Group alone = Group::alone();
  EXPECT_NE(test::error_of<UsageError>([&] {
              Trainer trainer(work.options, alone);
            }).find("gpt2-tiny has a context of 256"),
            std::string::npos);
}

// A learning rate that blows up ends in NaN: no rank steps, and the record says so.
TEST(Trainer, A26_skips_a_step_whose_gradient_is_not_finite) {
  Workspace work;
  work.options.learning_rate = 1e30;
  work.options.clip = 0;
  Group alone = Group::alone();
  Trainer trainer(work.options, alone);
  StepResult step;
  while (trainer.steps_done() < 5 && !step.skipped) {
    step = trainer.step();
  }
  ASSERT_TRUE(step.skipped);
  const WeightDigests before = digest_weights(trainer.parallel());
  EXPECT_TRUE(trainer.step().skipped);
  EXPECT_EQ(digest_weights(trainer.parallel()).weights, before.weights);
}

}  // namespace
}  // namespace lockstep::train
