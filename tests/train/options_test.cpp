#include "train/options.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class Check : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.data = text_of(10'000);
    options_.run_directory = (folder_ / "runs/first").string();
  }

  std::string text_of(std::size_t bytes) const {
    const fs::path path = folder_ / (std::to_string(bytes) + ".txt");
    std::ofstream(path) << std::string(bytes, 'a');
    return path.string();
  }
  std::string refusal() const {
    try {
      check(options_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
  Options options_;
};

TEST_F(Check, accepts_the_defaults_on_a_text) { EXPECT_EQ(refusal(), "accepted"); }

TEST_F(Check, the_tokenizer_is_there) {
  options_.tokenizer = "gpt2";
  EXPECT_EQ(refusal(), "accepted");
  options_.tokenizer = (folder_ / "tokenizer.json").string();
  EXPECT_EQ(refusal(), "--tokenizer " + options_.tokenizer +
                           ": does not exist; use bytes, gpt2 or a Hugging Face tokenizer.json");
}

TEST_F(Check, a_model_folder_brings_its_tokenizer) {
  const fs::path model = folder_ / "model";
  fs::create_directories(model);
  options_.model = model.string();
  EXPECT_EQ(options_.tokenizer_spec(), "bytes");
  std::ofstream(model / "tokenizer.json") << "{}";
  EXPECT_EQ(options_.tokenizer_spec(), (model / "tokenizer.json").string());
  options_.tokenizer = "gpt2";
  EXPECT_EQ(options_.tokenizer_spec(), "gpt2");
  EXPECT_EQ(Options().tokenizer_spec(), "bytes");
}

TEST_F(Check, single_is_for_one_rank) {
  options_.stage = Stage::single;
  EXPECT_EQ(refusal(), "accepted");
  options_.ranks = 2;
  EXPECT_EQ(refusal(),
            "--stage single: is for one rank, got --ranks 2; use --stage ddp, or --ranks 1");
}

TEST_F(Check, sequences_fit_the_model_and_the_text) {
  options_.sequence = 257;
  EXPECT_NE(refusal().find("use --seq 256 or less"), std::string::npos);
  options_.model = "gpt2-124m";
  EXPECT_EQ(refusal(), "accepted");
  options_.sequence = 1024;
  options_.data = text_of(1138);  // nine tenths: 1025
  EXPECT_EQ(refusal(), "accepted");
  options_.data = text_of(1137);  // 1024: no token behind the last
  EXPECT_NE(refusal().find("1024 bytes for training"), std::string::npos);
}

TEST_F(Check, dropout_is_for_models_that_have_it) {
  options_.dropout = 0.1;
  EXPECT_EQ(refusal(), "accepted");
  options_.model = "llama-tiny";
  EXPECT_NE(refusal().find("use --dropout 0"), std::string::npos);
  options_.dropout = 0;
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(Check, reproducible_needs_powers_of_two_and_names_the_nearest) {
  struct Case {
    int ranks;
    std::int64_t accumulate;
    const char* hint;  // nullptr: works
  };
  options_.reproducible = true;
  for (const Case& one :
       {Case{1, 1, nullptr}, Case{2, 4, nullptr}, Case{8, 1, nullptr},
        Case{3, 1, "is 2: --ranks 2 --accumulate 1"}, Case{1, 3, "is 2: --ranks 1 --accumulate 2"},
        Case{7, 1, "is 8: --ranks 4 --accumulate 2"}, Case{5, 1, "is 4: --ranks 4 --accumulate 1"},
        Case{2, 3, "is 4: --ranks 2 --accumulate 2"}, Case{3, 3, "is 8: --ranks 2 --accumulate 4"},
        Case{7, 7, "is 64: --ranks 4 --accumulate 16"}}) {
    options_.ranks = one.ranks;
    options_.accumulate = one.accumulate;
    const std::string expected = one.hint == nullptr ? "accepted" : one.hint;
    EXPECT_NE(refusal().find(expected), std::string::npos) << refusal();
  }
}

TEST_F(Check, outputs_can_be_written) {
  options_.report = (folder_ / "r.json").string();
  EXPECT_EQ(refusal(), "accepted");
  options_.report = (folder_ / "absent/r.json").string();
  EXPECT_NE(refusal().find("make it first"), std::string::npos);
  options_.report.clear();
  options_.trace = folder_.string();
  EXPECT_NE(refusal().find("--trace"), std::string::npos);
  options_.trace.clear();
  options_.run_directory = options_.data + "/below";
  EXPECT_NE(refusal().find("is a file"), std::string::npos);
  options_.run_directory = (folder_ / "link").string();
  std::filesystem::create_symlink("nowhere", options_.run_directory);
  EXPECT_NE(refusal().find("is a link to nothing"), std::string::npos);
}

TEST(Options, warmup_defaults_to_a_tenth_of_the_steps_but_at_most_100) {
  Options options;
  for (const auto& [steps, warmup] : {std::pair{0, 0}, {9, 0}, {10, 1}, {999, 99}, {5000, 100}}) {
    options.steps = steps;
    EXPECT_EQ(options.warmup_steps(), warmup);
  }
  options.warmup = 7000;  // may exceed the steps
  EXPECT_EQ(options.warmup_steps(), 7000);
}

TEST(Options, generate_needs_a_run_folder) {
  GenerateOptions options;
  options.run_directory = "/no/such/run";
  EXPECT_THROW(check(options), UsageError);
  const test::TemporaryFolder folder;
  options.run_directory = folder.path();
  EXPECT_NO_THROW(check(options));
}

TEST(Options, an_export_goes_to_a_new_or_empty_folder) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  fs::create_directories(folder / "run");
  ExportOptions options{.run_directory = (folder / "run").string(),
                        .folder = (folder / "run/model").string()};
  EXPECT_NO_THROW(check(options));
  options.folder = folder.string();
  EXPECT_THROW(check(options), UsageError) << "it holds the run";
  options.folder = (folder / "run").string();
  EXPECT_NO_THROW(check(options));
  options.run_directory = (folder / "absent").string();
  EXPECT_THROW(check(options), UsageError);
}

}  // namespace
}  // namespace lockstep::train
