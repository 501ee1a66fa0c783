#include "lockstep/checkpoint.h"

#include "checkpoint/manifest.h"
#include "checkpoint/step_folders.h"
#include "parallel/modules.h"
#include "support/file_size_limit.h"
#include "support/ranks.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using test::append;
using test::contents_of;
using test::error_of;
using test::Parameters;
using test::run_ranks;
using test::Shapes;
using test::TemporaryFolder;
using test::values_of;

// What a checkpoint has to bring back: dropout, a norm in fp32, buffers, a frozen parameter.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(8, 10));
    norm = register_module("norm", torch::nn::BatchNorm1d(10));
    drop = register_module("drop", torch::nn::Dropout(0.2));
    second = register_module("second", torch::nn::Linear(10, 3));
    frozen = register_parameter("frozen", torch::full({3}, 1.5), /*requires_grad=*/false);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto dtype = first->weight.scalar_type();
    const torch::Tensor normed = norm(first(x.to(dtype)).to(torch::kFloat32));
    return second(drop(normed).to(dtype)) * frozen;
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear second{nullptr};
  torch::Tensor frozen;
};
TORCH_MODULE(Net);

Precision bf16() {
  return Precision::bf16_mixed([](const std::string& name) { return name.starts_with("norm"); });
}

struct Held {
  Stage stage = Stage::ddp;
  bool share_parameters = false;
};

ParallelOptions options_for(const Group& group, const Precision& precision, const Held& held) {
  ParallelOptions options;
  options.stage = group.size() == 1 ? Stage::single : held.stage;
  options.share_parameters = held.share_parameters;
  options.precision = precision;
  options.seed = 5;
  return options;
}

// An expectation of a rank, which is a process of its own: what fails there reaches the test as the
// rank's error.
void require(bool holds, const std::string& what) {
  if (!holds) {
    throw std::runtime_error("not so: " + what);
  }
}

// A model in training, as every test here needs it.
struct Training {
  Net net;
  Parallel parallel;
  AdamW optimizer;

  Training(Group& group, const Precision& precision, std::uint64_t seed = 1, const Held& held = {})
      : net((torch::manual_seed(seed), Net())),
        parallel(net, group, options_for(group, precision, held)),
        optimizer(parallel.adamw({.lr = 0.05})) {}

  // Runs until `steps` are done; returns what each step showed.
  std::vector<double> train(std::int64_t steps) {
    std::vector<double> shown;
    while (parallel.steps() < steps) {
      std::vector<double> losses;
      for (const MicroStep& micro : parallel.micro_steps()) {
        // Leaves differ in their target only: the batch norm sees the same on every rank.
        const auto shift = static_cast<double>(parallel.steps());
        const torch::Tensor x = torch::sin(torch::arange(32).reshape({4, 8}) * 0.3 + shift);
        const torch::Tensor loss = (net(x.to(torch::kFloat32)) - 1 - micro.leaf).pow(2).mean();
        losses.push_back(loss.item<double>());
        loss.backward();
      }
      shown.push_back(parallel.clip_grad_norm(0.5));
      optimizer.step();
      shown.push_back(parallel.mean_loss(losses));
    }
    return shown;
  }

  std::string save(const std::string& folder, const SaveOptions& options = {}) {
    return save_checkpoint(folder, parallel, optimizer.flat_state(), options);
  }
  LoadedCheckpoint load(const std::string& path) {
    return load_checkpoint(path, parallel, optimizer.flat_state());
  }

  // Everything there is, parameters as held included.
  std::vector<double> state() {
    std::vector<double> all;
    for (const auto& item : net->named_parameters()) {
      append(all, values_of(item.value()));
      append(all, values_of(parallel.full_parameter(item.key())));
    }
    for (const auto& item : net->named_buffers()) {
      append(all, values_of(item.value()));
    }
    const OptimizerState& optimizer_state = optimizer.flat_state();
    for (const char* const name : {"first.weight", "norm.bias", "second.bias"}) {
      for (const std::string& slot : optimizer_state.slots()) {
        append(all, values_of(optimizer_state.elements(slot, name)));
      }
      all.push_back(static_cast<double>(optimizer_state.updates(name)));
    }
    return all;
  }
};

void expect_a_saved_run_to_go_on(int ranks, const Precision& precision, const Held& held = {}) {
  const TemporaryFolder folder;
  const auto results = run_ranks(ranks, [&](Group& group) {
    at::set_num_threads(1);
    Training straight(group, precision, 1, held);
    std::vector<double> expected = straight.train(6);
    append(expected, straight.state());
    Training first(group, precision, 1, held);
    std::vector<double> shown = first.train(3);
    const std::string path = first.save(folder.path(), {.user = R"({"epoch":2})"});
    require(path == folder.file("step-00000003"), "its path is " + path);
    Training second(group, precision, /*seed=*/2, held);
    const LoadedCheckpoint loaded = second.load(path);
    require(loaded.step == 3, "step 3 is loaded");
    require(loaded.user == R"({"epoch":2})", "the user's state is " + loaded.user);
    require(second.state() == first.state(), "the loaded state is the saved one");
    append(shown, second.train(6));
    append(shown, second.state());
    require(shown == expected, "the resumed run is the straight one");
    require(expected[0] > 0.5, "clipping does something");
    return std::vector<double>{};
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error, "");
  }
}

TEST(Checkpoint, ASavedRunGoesOnBitForBit) {
  for (const int ranks : {1, 2}) {
    expect_a_saved_run_to_go_on(ranks, Precision::f32());
    expect_a_saved_run_to_go_on(ranks, bf16());
  }
}

TEST(Checkpoint, ASavedRunOfAShardedStageGoesOnBitForBit) {
  for (const Held& held : {Held{Stage::zero1},
                           {Stage::zero2},
                           {Stage::zero3},
                           {Stage::ddp, true},
                           {Stage::zero2, true}}) {
    for (const int ranks : {2, 3}) {
      expect_a_saved_run_to_go_on(ranks, Precision::f32(), held);
      expect_a_saved_run_to_go_on(ranks, bf16(), held);
    }
  }
}

// Saved by 2 ranks of zero2, read and saved again by 4 of zero3, it is what one rank reads either
// time.
TEST(Checkpoint, AShardedStateLoadsOnOtherRanksAndStages) {
  const TemporaryFolder first;
  const TemporaryFolder second;
  const auto without_error = [](const std::vector<test::RankResult>& results) {
    for (const auto& result : results) {
      EXPECT_EQ(result.error, "");
    }
  };
  without_error(run_ranks(2, [&](Group& group) {
    Training training(group, bf16(), 1, {Stage::zero2});
    training.train(3);
    training.save(first.path());
    return std::vector<double>{};
  }));
  without_error(run_ranks(4, [&](Group& group) {
    Training training(group, bf16(), 2, {Stage::zero3});
    training.load(first.file("step-00000003"));
    training.save(second.path());
    return std::vector<double>{};
  }));
  const auto read = [](const TemporaryFolder& folder) {
    Group alone = Group::alone();
    Training training(alone, bf16(), 3);
    training.load(folder.file("step-00000003"));
    return training.state();
  };
  EXPECT_EQ(read(first), read(second));
}

// One parameter of ten elements and others around it, after two steps.
std::vector<double> ten_elements(Group& group, const std::string& folder, bool saves) {
  at::set_num_threads(1);
  Parameters model(Shapes{{"w", {10}}, {"long", {300}}, {"scalar", {}}, {"empty", {0}}}, 0.5);
  Parallel parallel(model, group, {.stage = Stage::ddp});
  AdamW optimizer = parallel.adamw({.lr = 0.1});
  if (saves) {
    for (int step = 0; step < 2; ++step) {
      // "long" is cut over the ranks, so its elements differ.
      ((model["w"] * torch::arange(10) + model["scalar"]).sum() +
       (model["long"] * torch::sin(torch::arange(300))).sum())
          .backward();
      optimizer.step();
    }
    save_checkpoint(folder, parallel, optimizer.flat_state());
  } else {
    load_checkpoint(folder + "/step-00000002", parallel, optimizer.flat_state());
  }
  std::vector<double> all{static_cast<double>(parallel.steps())};
  for (const char* const name : {"w", "long", "scalar", "empty"}) {
    append(all, values_of(parallel.full_parameter(name)));
    append(all, values_of(optimizer.flat_state().elements("exp_avg", name)));
    append(all, values_of(optimizer.flat_state().elements("exp_avg_sq", name)));
    all.push_back(static_cast<double>(optimizer.flat_state().updates(name)));
  }
  return all;
}

TEST(Checkpoint, K45_ten_elements_saved_on_4_ranks_load_on_1_3_and_8) {
  const TemporaryFolder folder;
  const auto saved = run_ranks(
      4, [&](Group& group) { return ten_elements(group, folder.path(), /*saves=*/true); });
  ASSERT_EQ(saved[0].error, "");
  EXPECT_EQ(saved[0].values[0], 2);
  for (const int ranks : {1, 3, 8}) {
    for (const auto& result : run_ranks(ranks, [&](Group& group) {
           return ten_elements(group, folder.path(), /*saves=*/false);
         })) {
      EXPECT_EQ(result.error, "");
      EXPECT_EQ(result.values, saved[0].values) << ranks << " ranks";
    }
  }
}

struct TiedImpl : torch::nn::Module {
  explicit TiedImpl(double value) {
    embedding = register_parameter("embedding", torch::full({100}, value));
    head = register_parameter("head", embedding);
  }
  torch::Tensor embedding;
  torch::Tensor head;
};
TORCH_MODULE(Tied);

TEST(Checkpoint, G21_a_tied_parameter_is_saved_once_and_comes_back_as_one_tensor) {
  const TemporaryFolder folder;
  const auto results = run_ranks(2, [&](Group& group) {
    at::set_num_threads(1);
    Tied first(1.0);
    Parallel parallel(first, group, {.stage = Stage::ddp});
    AdamW optimizer = parallel.adamw({.lr = 0.5});
    ((first->embedding * 2 + first->head * 3) * torch::arange(1, 101)).sum().backward();
    optimizer.step();
    const std::string path = save_checkpoint(folder.path(), parallel, optimizer.flat_state());
    Tied second(7.0);
    Parallel resumed(second, group, {.stage = Stage::ddp});
    AdamW other = resumed.adamw({.lr = 0.5});
    load_checkpoint(path, resumed, other.flat_state());
    require(second->embedding.is_same(second->head), "one tensor");
    require(torch::equal(second->head, first->head), "its values");
    require(torch::equal(other.flat_state().elements("exp_avg", "embedding"),
                         optimizer.flat_state().elements("exp_avg", "embedding")),
            "its moment");
    return std::vector<double>{};
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error, "");
  }
  const auto saved = checkpoint::read_manifest(folder.file("step-00000001")).arrays;
  EXPECT_EQ(saved.size(), 3u) << "the parameter and its two moments";
}

std::map<std::string, std::string> files_in(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    files[entry.path().filename().string()] = contents_of(entry.path().string());
  }
  return files;
}

TEST(Checkpoint, K48_save_load_save_gives_the_same_bytes) {
  const TemporaryFolder folder;
  const auto results = run_ranks(2, [&](Group& group) {
    at::set_num_threads(1);
    Training first(group, bf16());
    first.train(2);
    const std::string path = first.save(folder.file("first"), {.user = R"({"b":1,"a":0.1})"});
    Training second(group, bf16(), /*seed=*/9);
    const LoadedCheckpoint loaded = second.load(path);
    second.save(folder.file("second"), {.user = loaded.user});
    return std::vector<double>{};
  });
  ASSERT_EQ(results[0].error + results[1].error, "");
  const auto first = files_in(folder.file("first/step-00000002"));
  EXPECT_EQ(first.size(), 5u) << "two files of each rank, and the manifest";
  EXPECT_EQ(first, files_in(folder.file("second/step-00000002")));
}

TEST(Checkpoint, H43_save_on_rank_0_only_is_an_error_that_names_both_sides) {
  const TemporaryFolder folder;
  const auto results = run_ranks(2, [&](Group& group) {
    at::set_num_threads(1);
    Training training(group, Precision::f32());
    training.train(1);
    if (group.rank() == 0) {
      training.save(folder.path());
    }
    training.train(2);
    return std::vector<double>{};
  });
  for (const auto& result : results) {
    EXPECT_NE(result.error.find("begin checkpoint"), std::string::npos) << result.error;
    EXPECT_NE(result.error.find("bucket"), std::string::npos) << result.error;
  }
  EXPECT_TRUE(checkpoint::saved_steps(folder.path()).empty());
  EXPECT_TRUE(checkpoint::unfinished_steps(folder.path()).empty());
}

TEST(Checkpoint, AFullDiskOnOneRankFailsAllAndLeavesThePreviousStep) {
  const TemporaryFolder folder;
  const auto results = run_ranks(2, [&](Group& group) {
    at::set_num_threads(1);
    Training training(group, Precision::f32());
    training.train(1);
    training.save(folder.path());
    const std::vector<double> before = training.state();
    std::string error;
    try {
      const test::FileSizeLimit limit(group.rank() == 1 ? 100 : RLIM_INFINITY);
      training.parallel.resume_at(2);
      training.save(folder.path(), {.keep = 1});
    } catch (const Error& failure) {
      error = failure.what();
    }
    require(error.starts_with("rank 1: "), error);
    require(error.ends_with("writing after 100 bytes failed: File too large"), error);
    training.load(folder.file("step-00000001"));
    require(training.state() == before, "the previous step loads");
    return std::vector<double>{};
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error, "");
  }
  EXPECT_EQ(checkpoint::saved_steps(folder.path()), (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(checkpoint::unfinished_steps(folder.path()).empty());
}

TEST(Checkpoint, WhatDoesNotFitChangesNothing) {
  const TemporaryFolder folder;
  Group group = Group::alone();
  Training training(group, Precision::f32());
  training.train(1);
  const std::string path = training.save(folder.path());
  training.train(2);
  const std::vector<double> before = training.state();
  const std::string file = path + "/optimizer-00001-of-00001.safetensors";
  std::string bytes = contents_of(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_EQ(error_of<Error>([&] { training.load(path); }).find(file + ": damaged"), 0u);
  EXPECT_EQ(training.state(), before);
  EXPECT_EQ(training.parallel.steps(), 2);

  Parameters other(Shapes{{"second", {2}}}, 0.25);
  Parallel parallel(other, group, {.stage = Stage::single});
  AdamW optimizer = parallel.adamw();
  EXPECT_NE(error_of<UsageError>([&] {
              load_checkpoint(path, parallel, optimizer.flat_state());
            }).find("expected parameter 'second' (f32 [2]), found none"),
            std::string::npos);
  EXPECT_EQ(values_of(parallel.full_parameter("second")), std::vector<double>(2, 0.25));
}

TEST(Checkpoint, TheNewestIsFoundByLooking) {
  const TemporaryFolder folder;
  EXPECT_EQ(latest_checkpoint(folder.file("none")), std::nullopt);
  Group group = Group::alone();
  Training training(group, Precision::f32());
  for (const std::int64_t step : {1, 2, 3}) {
    training.train(step);
    training.save(folder.path(), {.keep = 2});
  }
  EXPECT_EQ(latest_checkpoint(folder.path()), folder.file("step-00000003"));
  EXPECT_EQ(checkpoint::saved_steps(folder.path()), (std::vector<std::int64_t>{2, 3}));
  EXPECT_NE(error_of<UsageError>([&] {
              training.save(folder.path(), {.user = "3"});
            }).find("no JSON object"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
