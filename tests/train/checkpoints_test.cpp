#include "train/checkpoints.h"

#include "checkpoint/step_folders.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"
#include "train/weights.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using test::TemporaryFolder;

struct Workspace {
  TemporaryFolder folder;
  Options options;

  Workspace() {
    ::setenv("LOCKSTEP_CACHE", folder.file("cache").c_str(), 1);
    options.data = folder.write("text", text_of('a'));
    options.stage = Stage::single;
    options.sequence = 16;
    options.micro_batch = 1;
    options.steps = 6;
    options.eval_batches = 0;
    options.checkpoint = folder.file("saved");
  }
  ~Workspace() { ::unsetenv("LOCKSTEP_CACHE"); }

  static std::string text_of(char letter) {
    std::string text;
    while (text.size() < 2000) {
      text += "to be or not to be, that is the ";
      text += letter;
    }
    return text;
  }

  // Runs to the end as lockstep train does; the steps that were saved.
  std::vector<std::int64_t> run() {
    Group alone = Group::alone();
    Trainer trainer(options, alone);
    Checkpoints checkpoints(options, trainer);
    first_step = checkpoints.first_step();
    note = checkpoints.note().value_or("");
    while (trainer.steps_done() < checkpoints.last_step()) {
      trainer.step();
      checkpoints.save_if_due();
    }
    checkpoints.save_if_due();
    weights = digest_weights(trainer.parallel()).weights;
    return checkpoint::saved_steps(options.checkpoint);
  }
  std::int64_t first_step = -1;
  std::string note;
  Digest weights{};
};

using Steps = std::vector<std::int64_t>;

TEST(Checkpoints, AreSavedWhenDueAndAtTheEnd) {
  Workspace work;
  work.options.checkpoint_every = 4;
  EXPECT_EQ(work.run(), (Steps{4, 6}));
  EXPECT_EQ(work.note, "");
  work.options.checkpoint = work.folder.file("other");
  work.options.checkpoint_every = 0;
  work.options.stop_at = 2;
  EXPECT_EQ(work.run(), (Steps{2}));
  work.options.checkpoint = work.folder.file("none");
  work.options.stop_at = 0;
  EXPECT_EQ(work.run(), (Steps{0})) << "the initial weights";
}

TEST(Checkpoints, AResumedRunEndsWithTheSameBits) {
  Workspace straight;
  straight.run();
  Workspace work;
  work.options.stop_at = 3;
  work.run();
  EXPECT_NE(work.weights, straight.weights);
  work.options.stop_at.reset();
  work.options.resume = true;
  work.options.learning_rate = 3e-4;
  EXPECT_EQ(work.run(), (Steps{3, 6}));
  EXPECT_EQ(work.first_step, 3);
  EXPECT_EQ(work.note, "resume      " + work.folder.file("saved/step-00000003"));
  EXPECT_EQ(work.weights, straight.weights);
  EXPECT_EQ(work.run(), (Steps{3, 6})) << "nothing is left to do";
  EXPECT_EQ(work.first_step, 6);
  EXPECT_EQ(work.weights, straight.weights);
}

TEST(Checkpoints, NothingToResumeIsSaid) {
  Workspace work;
  work.options.resume = true;
  work.options.keep = 1;
  work.options.checkpoint_every = 1;
  EXPECT_EQ(work.run(), (Steps{6}));
  EXPECT_EQ(work.first_step, 0);
  EXPECT_NE(work.note.find("nothing is saved in"), std::string::npos);
}

TEST(Checkpoints, AnotherTextIsRefusedAndANewRateIsTold) {
  Workspace work;
  work.options.stop_at = 1;
  work.run();
  work.options.resume = true;
  work.options.learning_rate = 1e-5;
  work.options.stop_at = 2;
  work.run();
  EXPECT_NE(work.note.find("with --lr 1e-05 (was 3e-04)"), std::string::npos) << work.note;
  work.options.data = work.folder.write("other", Workspace::text_of('b'));
  EXPECT_NE(test::error_of<UsageError>([&] { work.run(); }).find("give the text it was trained on"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
