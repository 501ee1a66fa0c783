// `lockstep train` as a user runs it, and what its reports promise.
#include "train/run.h"

#include "data/byte_level.h"
#include "data/text_source.h"
#include "launch/started_program.h"
#include "support/temporary_folder.h"
#include "train/runs.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using nlohmann::json;
using test::StartedProgram;

void expect_same_bits(const json& report, const json& reference) {
  for (const char* field : {"losses", "grad_norms", "validation", "weights_sha256"}) {
    EXPECT_EQ(report[field], reference[field]) << report["command"] << ": " << field;
  }
}

// Every rank ran k forwards per step and sent what the formula says.
void expect_counts(const json& report) {
  const auto ranks = report["ranks"].get<std::size_t>();
  const auto forwards = report["steps"].get<std::int64_t>() * report["accumulate"].get<int>();
  EXPECT_EQ(report["forwards"], json(std::vector<std::int64_t>(ranks, forwards)));
  ASSERT_EQ(report["traffic"]["per_rank"].size(), ranks);
  for (const json& rank : report["traffic"]["per_rank"]) {
    EXPECT_EQ(rank["sent"], report["traffic"]["predicted"]["sent"]) << report["command"];
  }
  for (const json& rank : report["memory"]["per_rank"]) {
    for (const char* category : {"parameters", "gradients", "optimizer"}) {
      EXPECT_EQ(rank[category], report["memory"]["predicted"][category]) << category;
    }
  }
}

// Of a run of at least one step: all moments were looked at, and activations come and go.
void expect_phases(const json& report) {
  const json& predicted = report["memory"]["predicted"];
  ASSERT_EQ(report["memory"]["phases"].size(), report["ranks"].get<std::size_t>());
  for (std::size_t rank = 0; rank < report["memory"]["phases"].size(); ++rank) {
    const json& phases = report["memory"]["phases"][rank];
    const json& totals = report["memory"]["per_rank"][rank];
    ASSERT_EQ(phases.size(), 4u) << phases;
    for (const auto& [name, phase] : phases.items()) {
      for (const char* category : {"parameters", "gradients", "optimizer"}) {
        EXPECT_EQ(phase[category], predicted[category]) << name << " " << category;
      }
      EXPECT_LE(phase["transient"], predicted["transient_peak"]) << name;
      EXPECT_LE(phase["activations"], phase["activations_peak"]) << name;
      EXPECT_LE(phase["pss"], totals["pss_peak"]) << name;
    }
    EXPECT_EQ(phases["at_rest"]["pss"], totals["pss_at_rest"]);
    EXPECT_EQ(phases["at_rest"]["activations"], 0);
    EXPECT_EQ(phases["after_forward"]["activations"], totals["activations_peak"]);
    const auto forward = phases["after_forward"]["activations"].get<std::int64_t>();
    EXPECT_GT(phases["last_hook"]["activations_peak"], forward) << "gradients in backward";
    // Of stages that hold gradients in shards those of at most two buckets wait for their windows.
    EXPECT_LT(phases["last_hook"]["activations"], forward / 2);
    EXPECT_LT(phases["after_update"]["activations"], forward / 10);
  }
}

// What all ranks have resident of their shared memory is what the kernel has allocated for it: a
// page not in use would be a leak, one counted twice an error of the sum. `ledger`: bytes that the
// ledger has in there.
void expect_shared_memory(const json& report, std::int64_t ledger) {
  const auto resident = report["memory"]["shared"]["pss"].get<std::int64_t>();
  const auto allocated = report["memory"]["shared"]["memfds"].get<std::int64_t>();
  EXPECT_LE(resident, allocated + 4096);
  EXPECT_GE(resident, allocated - allocated / 50) << report["command"];
  EXPECT_GE(allocated, ledger) << report["command"];
  // Beside it lie the slots of the run's two groups.
  EXPECT_LE(allocated, ledger + report["ranks"].get<std::int64_t>() * 2'000'000);
}

std::int64_t collectives_of(const json& report) {
  return report["traffic"]["per_rank"][0]["collectives"].get<std::int64_t>();
}

class Reproducible : public ::testing::TestWithParam<const char*> {
 protected:
  json train(const Words& words) {
    return runs_.train(joined(
        {"--steps", "20", "--dropout", "0.1", "--reproducible", "--precision", GetParam()}, words));
  }
  Runs runs_;
};

TEST_P(Reproducible, OneTwoAndFourRanksEndWithTheSameBits) {
  const json alone = train({"--ranks", "1", "--stage", "single", "--accumulate", "4"});
  EXPECT_LT(alone["losses"].back().get<double>(), alone["losses"].front().get<double>() - 0.5);
  EXPECT_EQ(alone["losses"].size(), 20u);
  expect_counts(alone);
  for (const char* ranks : {"2", "4"}) {
    const json report =
        train({"--ranks", ranks, "--stage", "ddp", "--accumulate", ranks[0] == '2' ? "2" : "1"});
    expect_same_bits(report, alone);
    expect_counts(report);
  }
}

TEST_P(Reproducible, ShardedStagesEndWithTheSameBits) {
  const json ddp = train({"--ranks", "2", "--stage", "ddp", "--accumulate", "2"});
  for (const char* const stage : {"zero1", "zero2", "zero3"}) {
    Words two{"--ranks", "2", "--stage", stage, "--accumulate", "2"};
    two.insert(two.end(), {stage[4] == '3' ? "--unit-blocks" : "--bucket-mb", "2"});
    const json report = train(two);
    expect_same_bits(report, ddp);
    expect_counts(report);
    const json four = train({"--ranks", "4", "--stage", stage, "--accumulate", "1"});
    expect_same_bits(four, ddp);
    expect_counts(four);
  }
  const json full =
      train({"--ranks", "2", "--stage", "zero2", "--accumulate", "2", "--accumulate-in", "full"});
  expect_same_bits(full, ddp);
  expect_counts(full);
}

TEST_P(Reproducible, BucketsAndOverlapChangeNoBit) {
  const Words two{"--ranks", "2", "--stage", "ddp", "--accumulate", "2"};
  const json reference = train(two);
  std::set<std::int64_t> collectives{collectives_of(reference)};
  for (const char* megabytes : {"0", "1"}) {
    const json report = train(joined(two, {"--bucket-mb", megabytes}));
    expect_same_bits(report, reference);
    expect_counts(report);
    collectives.insert(collectives_of(report));
  }
  EXPECT_EQ(collectives.size(), 3u) << "buckets of 0, 1 and 25 MB take different collectives";
  const json late = train(joined(two, {"--overlap", "off"}));
  expect_same_bits(late, reference);
  EXPECT_EQ(collectives_of(late), collectives_of(reference));
}

TEST_P(Reproducible, ALlamaEndsWithTheSameBitsOnOneAndTwoRanks) {
  const Words llama{"--model", "llama-tiny", "--steps", "8", "--dropout", "0"};
  const json alone =
      train(joined(llama, {"--ranks", "1", "--stage", "single", "--accumulate", "2"}));
  EXPECT_LT(alone["losses"].back().get<double>(), alone["losses"].front().get<double>() - 0.1);
  const json pair = train(joined(llama, {"--ranks", "2", "--stage", "ddp"}));
  expect_same_bits(pair, alone);
  expect_counts(pair);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Reproducible, ::testing::Values("f32", "bf16"));

TEST(Run, TwentyStepsAgreeWithPyTorchOnTheGlobalBatch) {
  Runs runs;
  const Words two{"--ranks", "2", "--stage", "ddp", "--accumulate", "2"};
  runs.train(joined(two, {"--steps", "0"}));
  const std::string weights = runs.last_run() + "/weights.safetensors";
  const json report = runs.train(joined(two, {"--steps", "20"}));
  EXPECT_GT(report["grad_norms"][0].get<double>(), 1.0) << "clipping does something";
  StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_AGREEMENT, data::resolve("text"),
                         weights, runs.last_run() + "/report.json"});
  EXPECT_EQ(python.wait(kPatience), 0) << python.output() << python.error();
  EXPECT_NE(python.output().find("20 steps agree"), std::string::npos);
}

// What is exported computes in transformers what the run computed, and trains on here.
TEST(Run, AnExportedModelIsTheRunsModel) {
  Runs runs;
  const test::TemporaryFolder folder;
  const Words few{"--ranks", "1", "--stage", "single", "--steps", "3"};
  for (const char* const model : {"gpt2-tiny", "llama-tiny"}) {
    const json report = runs.train(joined(few, {"--model", model}));
    const std::string exported = folder.file(model);
    StartedProgram program(
        {LOCKSTEP_PROGRAM, "checkpoint", "export", "--run", runs.last_run(), "--to", exported});
    EXPECT_EQ(program.wait(kPatience), 0) << program.error();
    StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_VALIDATION, runs.last_run(),
                           exported, data::resolve("text")});
    EXPECT_EQ(python.wait(kPatience), 0) << python.output() << python.error();
    const json again =
        runs.train({"--ranks", "2", "--steps", "0", "--model", exported, "--seed", "5"});
    EXPECT_EQ(again["weights_sha256"], report["weights_sha256"]);
    EXPECT_EQ(again["validation"][0]["loss"], report["validation"].back()["loss"]);
  }
}

// What `lockstep generate` prints of a run.
std::string generated(const std::string& run) {
  StartedProgram program(
      {LOCKSTEP_PROGRAM, "generate", "--run", run, "--prompt", "To be", "--bytes", "40"});
  EXPECT_EQ(program.wait(kPatience), 0) << program.error();
  return program.output();
}

TEST(Run, TrainsOnGpt2sTokensAndGeneratesWithThem) {
  Runs runs;
  const Words two_ranks{"--ranks", "2", "--steps", "2", "--tokenizer", "gpt2", "--sample", "20"};
  const json report = runs.train(two_ranks);
  EXPECT_NE(runs.last_output().find("tokenised   5.06 MB in "), std::string::npos);
  EXPECT_NE(runs.last_output().find("sample:\n"), std::string::npos);
  // 50,257 rows instead of 256, of width 128.
  const json bytes = runs.train({"--steps", "0"});
  EXPECT_EQ(report["parameters"].get<int>() - bytes["parameters"].get<int>(), 50'001 * 128);
  EXPECT_NEAR(report["losses"][0].get<double>(), std::log(50'257), 0.3);
  const json again = runs.train(two_ranks);
  EXPECT_EQ(again["weights_sha256"], report["weights_sha256"]);
  EXPECT_EQ(runs.last_output().find("tokenised"), std::string::npos);
  EXPECT_GE(generated(runs.last_run()).size(), 45u);
}

TEST(Run, KeepsATokenizerFileForItsModel) {
  Runs runs;
  const test::TemporaryFolder folder;
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[data::byte_level_character(static_cast<unsigned char>(byte))] = byte;
  }
  vocabulary["th"] = 256;
  const json file{
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"t h"}}}}};
  const std::string path = folder.write("small.json", file.dump());
  runs.train({"--steps", "1", "--tokenizer", path});
  std::filesystem::remove(path);
  EXPECT_TRUE(generated(runs.last_run()).starts_with("To be"));
  // Another file in the copy's place is noticed.
  json other = file;
  other["model"]["vocab"]["he"] = 257;
  std::ofstream(runs.last_run() + "/tokenizer.json") << other.dump();
  StartedProgram generate({LOCKSTEP_PROGRAM, "generate", "--run", runs.last_run()});
  EXPECT_EQ(generate.wait(kPatience), 2) << generate.output();
  EXPECT_NE(generate.error().find("was trained with another state of"), std::string::npos)
      << generate.error();
}

TEST(Run, StepsZeroReportsTheInitialWeights) {
  Runs runs;
  const json initial = runs.train({"--ranks", "1", "--stage", "single", "--steps", "0"});
  EXPECT_EQ(initial["losses"].size(), 0u);
  EXPECT_EQ(initial["validation"][0]["step"], 0);
  const json again = runs.train({"--ranks", "2", "--steps", "0", "--precision", "bf16"});
  EXPECT_EQ(again["weights_sha256"], initial["weights_sha256"]);
  const json trained = runs.train({"--ranks", "1", "--stage", "single", "--steps", "1"});
  EXPECT_NE(trained["weights_sha256"], initial["weights_sha256"]);
}

TEST(Run, LeavesItsFolderAndShowsWhatItDid) {
  Runs runs;
  const json report =
      runs.train({"--ranks", "2", "--steps", "3", "--eval-every", "2", "--sample", "20"});
  std::vector<std::int64_t> steps;
  for (const std::string& line :
       test::lines_of(test::contents_of(runs.last_run() + "/metrics.jsonl"))) {
    steps.push_back(json::parse(line)["step"].get<std::int64_t>());
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 1, 2, 2, 3}));  // validations follow steps 2, 3
  EXPECT_EQ(report["validation"].size(), 2u);
  EXPECT_NE(runs.last_output().find("bit-identical on all 2 ranks"), std::string::npos);
  EXPECT_NE(runs.last_output().find("sample"), std::string::npos);

  StartedProgram generate({LOCKSTEP_PROGRAM, "generate", "--run", runs.last_run(), "--prompt",
                           "To be", "--bytes", "5"});
  EXPECT_EQ(generate.wait(kPatience), 0) << generate.error();
  EXPECT_EQ(generate.output().find("To be"), 0u) << generate.output();
}

// Measured memory, summed over the ranks, is the ledger plus the activations.
TEST(Run, MeasuredMemoryIsTheLedgerPlusActivations) {
  Runs runs;
  const json report = runs.train({"--ranks", "2", "--steps", "2", "--micro-batch", "16"});
  std::int64_t measured = 0;
  std::int64_t expected = 0;
  for (const json& rank : report["memory"]["per_rank"]) {
    measured += rank["pss_peak"].get<std::int64_t>();
    for (const char* part :
         {"parameters", "gradients", "optimizer", "transient_peak", "activations_peak"}) {
      expected += rank[part].get<std::int64_t>();
    }
  }
  expect_phases(report);
  // A model this small leaves room for what LibTorch and the groups keep: 4 MB per rank. With
  // gpt2-124m the difference is below 3 %, which lockstep bench acceptance checks.
  EXPECT_GT(measured, expected - 2 * 1'000'000);
  EXPECT_LT(measured, expected + 2 * 4'000'000);
}

TEST(Run, SharedMemoryIsWhatTheLedgerHasThereAndAllOfItIsResident) {
  Runs runs;
  struct Expected {
    const char* stage;
    std::vector<const char*> shared;  // categories, of all ranks
  };
  for (const Expected& expected :
       {Expected{"ddp", {"gradients"}}, Expected{"zero1", {"parameters", "gradients"}},
        Expected{"zero3", {"parameters", "transient_peak"}}}) {
    const json report = runs.train({"--ranks", "2", "--steps", "2", "--stage", expected.stage});
    std::int64_t ledger = 0;
    for (const char* category : expected.shared) {
      ledger += 2 * report["memory"]["predicted"][category].get<std::int64_t>();
    }
    expect_phases(report);
    expect_shared_memory(report, ledger);
  }
}

}  // namespace
}  // namespace lockstep::train
