#include "train/resume.h"

#include "checkpoint/manifest.h"
#include "checkpoint/publication.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace lockstep::train {
namespace {

using nlohmann::json;
using test::error_of;
using test::TemporaryFolder;

const TextIdentity kText{.tokens = 1000, .windows = 90, .hash = "abc"};

Options some_options() {
  Options options;
  options.ranks = 2;
  options.accumulate = 2;
  options.micro_batch = 3;
  options.steps = 20;
  return options;
}

// A folder in which a run of `options` was saved after `step` steps.
void save(const std::string& folder, const Options& options, std::int64_t step) {
  checkpoint::Disk disk;
  checkpoint::Publication publication(disk, folder, step);
  checkpoint::Manifest manifest;
  manifest.step = step;
  manifest.user = run_state(options, kText, step);
  publication.publish(manifest);
}

// What a run of `options` with `change` says to going on from there.
std::string refusal(const std::function<void(Options&)>& change) {
  Options options = some_options();
  const std::string state = run_state(options, kText, 5);
  change(options);
  return error_of<UsageError>([&] { check_same_run("F", state, options); });
}

TEST(RunState, HoldsOptionsTextAndPosition) {
  const json state = json::parse(run_state(some_options(), kText, 10));
  EXPECT_EQ(state["options"]["model"], "\"gpt2-tiny\"");
  EXPECT_EQ(state["options"]["accumulate"], "2");
  EXPECT_EQ(state["text"]["tokens"], 1000);
  EXPECT_EQ(state["position"]["leaves"], 40);
  EXPECT_EQ(state["position"]["sequences"], 120);
  EXPECT_EQ(state["position"]["epoch"], 1);  // 120 of 90 windows
  EXPECT_EQ(state["position"]["sequences_per_step"], 12);
}

TEST(CheckSameRun, AcceptsWhatLeavesTheMeaning) {
  Options options = some_options();
  const std::string state = run_state(options, kText, 5);
  EXPECT_NO_THROW(check_same_run("F", state, options));
  EXPECT_EQ(changed_options(state, options), "");
  options.ranks = 1;  // the same global batch
  options.accumulate = 4;
  options.learning_rate = 1e-4;
  options.resume = true;
  options.run_directory = "elsewhere";
  EXPECT_NO_THROW(check_same_run("F", state, options));
  EXPECT_EQ(changed_options(state, options),
            "--ranks 1 (was 2), --accumulate 4 (was 2), --lr 1e-04 (was 3e-04)");
}

TEST(CheckSameRun, RefusesWhatWouldMakeItAnotherRun) {
  EXPECT_EQ(refusal([](Options& options) { options.seed = 2; }),
            "--resume: F was trained with --seed 1, got 2; give --seed 1, or start in another "
            "--checkpoint folder");
  EXPECT_NE(refusal([](Options& options) {
              options.model = "gpt2-124m";
            }).find("--model \"gpt2-tiny\", got \"gpt2-124m\""),
            std::string::npos);
  EXPECT_NE(refusal([](Options& options) { options.sequence = 64; }).find("--seq 256, got 64"),
            std::string::npos);
  EXPECT_EQ(refusal([](Options& options) { options.ranks = 4; }),
            "--resume: F was trained with 12 sequences per step, --ranks x --accumulate x "
            "--micro-batch makes 24; change one of them so that it is 12");
  EXPECT_NE(error_of<UsageError>([] {
              check_same_run("F", "{}", Options{});
            }).find("was not saved by lockstep train"),
            std::string::npos);
}

TEST(CheckSameRun, RefusesOtherMicroBatchesWhereTheSameBitsAreAskedFor) {
  const auto halve = [](Options& options) {
    options.micro_batch = 1;
    options.accumulate = 6;
  };
  Options options = some_options();
  const std::string state = run_state(options, kText, 5);
  halve(options);
  EXPECT_NO_THROW(check_same_run("F", state, options));
  EXPECT_EQ(refusal([&](Options& same) {
              halve(same);
              same.reproducible = true;
            }),
            "--resume: F was trained with --micro-batch 3, got 1, whose bits differ; give "
            "--micro-batch 3 and more or less --accumulate, or leave --reproducible out");
}

TEST(CheckSameText, RefusesAnotherText) {
  const std::string state = run_state(some_options(), kText, 5);
  EXPECT_NO_THROW(check_same_text("F", state, kText));
  TextIdentity other = kText;
  other.hash = "abd";
  EXPECT_NE(error_of<UsageError>([&] {
              check_same_text("F", state, other);
            }).find("give the text it was trained on"),
            std::string::npos);
}

TEST(FindResumePoint, IsTheNewestStep) {
  const TemporaryFolder folder;
  Options options = some_options();
  options.checkpoint = folder.path();
  EXPECT_FALSE(find_resume_point(options));
  options.resume = true;
  EXPECT_FALSE(find_resume_point(options)) << "nothing is saved yet";
  save(folder.path(), options, 5);
  save(folder.path(), options, 10);
  const auto point = find_resume_point(options);
  ASSERT_TRUE(point);
  EXPECT_EQ(point->step, 10);
  EXPECT_EQ(point->path, folder.file("step-00000010"));
}

TEST(FindResumePoint, LiesWithinTheRun) {
  const TemporaryFolder folder;
  Options options = some_options();
  options.checkpoint = folder.path();
  options.resume = true;
  save(folder.path(), options, 10);
  const auto text = [&] { return error_of<UsageError>([&] { find_resume_point(options); }); };
  options.stop_at = 9;
  EXPECT_NE(text().find("is at step 10, behind --stop-at 9; give --stop-at of at least 10"),
            std::string::npos);
  options.stop_at = 10;
  EXPECT_TRUE(find_resume_point(options));
  options.steps = 9;
  EXPECT_NE(text().find("is at step 10, --steps 9 is the total; give --steps of at least 10"),
            std::string::npos);
}

TEST(CheckCheckpoints, OptionsNeedTheirFolder) {
  for (const auto& change : std::vector<std::function<void(Options&)>>{
           [](Options& options) { options.resume = true; },
           [](Options& options) { options.checkpoint_every = 1; },
           [](Options& options) { options.keep = 1; },
           [](Options& options) { options.stop_at = 1; }}) {
    Options options;
    EXPECT_NO_THROW(check_checkpoints(options));
    change(options);
    EXPECT_NE(
        error_of<UsageError>([&] { check_checkpoints(options); }).find("needs --checkpoint DIR"),
        std::string::npos);
  }
}

TEST(CheckCheckpoints, ANewRunDoesNotMixWithAnOldOne) {
  const TemporaryFolder folder;
  Options options = some_options();
  options.checkpoint = folder.path();
  EXPECT_NO_THROW(check_checkpoints(options));
  save(folder.path(), options, 10);
  EXPECT_EQ(error_of<UsageError>([&] { check_checkpoints(options); }),
            "--checkpoint " + folder.path() +
                ": holds step 10 of a run; add --resume to go on from it, or name another folder");
  options.resume = true;
  EXPECT_NO_THROW(check_checkpoints(options));
  options.stop_at = 21;
  EXPECT_NE(error_of<UsageError>([&] { check_checkpoints(options); }).find("give at most that"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
