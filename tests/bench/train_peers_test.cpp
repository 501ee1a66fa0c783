#include "bench/common/temporary_folder.h"
#include "bench/train/peers.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep::bench {
namespace {

// Interpreters that find a package only when it is in a folder of the test's own.
class TrainPeers : public ::testing::Test {
 protected:
  // A Python that finds these packages and no others of their names.
  std::string python_with(const std::vector<std::string>& packages) {
    for (const std::string& package : packages) {
      std::filesystem::create_directory(folder_.file(package));
      std::ofstream(folder_.file(package) + "/__init__.py");
    }
    const std::string path = folder_.file("python");
    std::ofstream(path) << "#!/bin/sh\nPYTHONPATH=" << folder_.file("")
                        << " exec python3 -S \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainPeers, whose_package_is_missing_are_left_out_by_name) {
  TrainQuestion question;
  question.python = python_with({"torch"});
  const auto left_out = add_peers(question, peers());
  ASSERT_EQ(left_out.size(), 3u);
  EXPECT_EQ(left_out[0].mode.name, "deepspeed-zero1");
  EXPECT_EQ(left_out[0].reason, question.python +
                                    " has no deepspeed; run scripts/deepspeed, and name "
                                    ".deps/peers/deepspeed/bin/python with --python");
  ASSERT_EQ(question.modes.size(), 2 + 5u);
  EXPECT_EQ(question.modes.back().name, "pytorch-fsdp2");
}

TEST_F(TrainPeers, all_are_launched_where_all_packages_are) {
  TrainQuestion question;
  question.python = python_with({"torch", "deepspeed"});
  EXPECT_TRUE(add_peers(question, peers()).empty());
  EXPECT_EQ(question.modes.size(), 2 + peers().size());
}

TEST_F(TrainPeers, named_by_stages_are_refused_instead) {
  TrainQuestion question;
  question.python = python_with({});
  question.modes = modes_named({"apart", "pytorch-ddp"});
  try {
    add_peers(question, {});
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()),
              "--stages pytorch-ddp: " + question.python +
                  " has no torch; run scripts/setup, or name one that has it with --python");
  }
}

TEST_F(TrainPeers, what_is_no_python_is_refused_unless_nobody_needs_it) {
  TrainQuestion question;
  question.python = "/bin/false";
  EXPECT_TRUE(add_peers(question, {}).empty());
  EXPECT_THROW(add_peers(question, peers()), UsageError);
}

TEST_F(TrainPeers, run_without_the_settings_of_our_blas) {
  TrainQuestion question;
  question.python = "py";
  const auto torch = peer_command(question, mode_named("pytorch-ddp"));
  const std::vector<std::string> begin(torch.begin(), torch.begin() + 7);
  EXPECT_EQ(begin, (std::vector<std::string>{"env", "-u", "OPENBLAS_CORETYPE", "-u",
                                             "OPENBLAS_L2_SIZE", "DS_ACCELERATOR=cpu", "py"}));
  EXPECT_TRUE(std::filesystem::exists(torch.back())) << torch.back();
  const auto deepspeed = peer_command(question, mode_named("deepspeed-zero1"));
  EXPECT_TRUE(deepspeed.back().ends_with("deepspeed_train.py"));
  EXPECT_TRUE(std::filesystem::exists(deepspeed.back())) << deepspeed.back();
}

}  // namespace
}  // namespace lockstep::bench
