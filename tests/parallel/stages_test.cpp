// What holds in every stage alike: the same bits, the same decisions, the same loops.
#include "lockstep/parallel.h"
#include "lockstep/unit.h"
#include "parallel/clipped_runs.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace lockstep {
namespace {

using test::append;
using test::error_of;
using test::Parameters;
using test::Perceptron;
using test::rank_factor;
using test::run;
using test::Shapes;
using test::train_everywhere;
using test::values_of;

using Values = std::vector<double>;

class Stages : public testing::TestWithParam<Stage> {};
INSTANTIATE_TEST_SUITE_P(All, Stages,
                         testing::Values(Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3),
                         [](const auto& stage) { return std::string(name_of(stage.param)); });

Precision bf16() {
  return Precision::bf16_mixed([](const std::string& name) { return name.starts_with("norm"); });
}

TEST_P(Stages, GiveTheBitsOfDdpWhateverBucketsAndOverlap) {
  for (const Precision& precision : {Precision::f32(), bf16()}) {
    for (const int ranks : {1, 3, 4}) {
      const ParallelOptions base{.stage = Stage::ddp, .precision = precision, .seed = 3};
      const Values expected = train_everywhere({ranks, 1, base});
      for (const double bucket_mb : {0.0, 0.005, 25.0}) {
        ParallelOptions options = base;
        options.stage = GetParam();
        options.bucket_mb = bucket_mb;
        options.overlap = bucket_mb > 0;
        EXPECT_EQ(expected, train_everywhere({ranks, 1, options})) << bucket_mb;
      }
    }
  }
}

TEST_P(Stages, GiveTheBitsOfOneRankWhereReproducible) {
  for (const Precision& precision : {Precision::f32(), bf16()}) {
    ParallelOptions options{
        .stage = Stage::single, .precision = precision, .reproducible = true, .seed = 3};
    const Values one = train_everywhere({1, 8, options});
    options.stage = GetParam();
    for (const double bucket_mb : {0.005, 25.0}) {
      options.bucket_mb = bucket_mb;
      EXPECT_EQ(one, train_everywhere({2, 4, options}));
      EXPECT_EQ(one, train_everywhere({4, 2, options}));
    }
    EXPECT_LT(one.at(10), one.at(0));  // the last step's loss against the first's
  }
}

TEST_P(Stages, AccumulateInFullWithTheBitsOfDdp) {
  for (const Precision& precision : {Precision::f32(), bf16()}) {
    ParallelOptions options{.precision = precision, .accumulate_in = AccumulateIn::full, .seed = 3};
    options.stage = Stage::ddp;
    // As many micro-batches as ranks would add alike either way.
    const Values ddp = train_everywhere({3, 2, options});
    options.stage = GetParam();
    options.bucket_mb = 0.005;
    EXPECT_EQ(ddp, train_everywhere({3, 2, options}));
  }
}

// zero2's own order of addition: that of the shards, whatever the buckets.
TEST(Zero2, AccumulatesInShardsWithTheSameBitsForAllBuckets) {
  ParallelOptions options{.stage = Stage::zero2, .precision = bf16(), .seed = 3};
  const Values expected = train_everywhere({3, 3, options});
  for (const double bucket_mb : {0.0, 0.005}) {
    options.bucket_mb = bucket_mb;
    options.overlap = bucket_mb > 0;
    EXPECT_EQ(expected, train_everywhere({3, 3, options}));
  }
}

// A26: one rank's gradient is not finite.
TEST_P(Stages, A26_skip_a_step_together) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {200}}}, 1.0);
         Parallel parallel(model, group, {.stage = GetParam()});
         AdamW optimizer = parallel.adamw({.lr = 0.1});
         const double factor = group.rank() == 1 ? std::numeric_limits<double>::infinity() : 1.0;
         (model["w"].sum() * factor).backward();
         optimizer.step();
         const bool skipped = parallel.last_step().skipped;
         const double kept = model["w"][150].item<double>();
         model["w"].sum().backward();
         optimizer.step();
         return Values{skipped ? 1.0 : 0.0, kept, model["w"][150].item<double>() < 1 ? 1.0 : 0.0};
       })) {
    EXPECT_EQ(values, (Values{1, 1, 1}));
  }
}

// G2: unused on one rank counts as zero there; unused on all stays as it was, decay included.
TEST_P(Stages, G2_absent_is_not_zero) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"both", {}}, {"one", {}}, {"none", {}}}, 1.0);
         Parallel parallel(model, group, {.stage = GetParam(), .bucket_mb = 0});
         SGD optimizer = parallel.sgd({.lr = 1.0, .weight_decay = 0.5});
         Values result;
         for (int step = 0; step < 2; ++step) {
           torch::Tensor loss = model["both"] * 2;
           if (group.rank() == 1) {
             loss = loss + model["one"] * 4;
           }
           loss.backward();
           append(result, values_of(parallel.full_grad("both")));
           append(result, values_of(parallel.full_grad("one")));
           result.push_back(parallel.full_grad("none").defined() ? 1 : 0);
           parallel.grad_norm();
           optimizer.zero_grad();
         }
         ((model["both"] + model["one"]) * rank_factor(group)).backward();
         optimizer.step();
         for (const char* name : {"both", "one", "none"}) {
           append(result, values_of(model[name]));
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{2, 2, 0, 2, 2, 0, -1, -1, 1}));
  }
}

// G10: scalars and other shapes whose elements do not divide by the ranks.
TEST_P(Stages, G10_every_shape_averages) {
  for (const Values& values : run(4, [](Group& group) {
         const Shapes shapes{
             {"scalar", {}}, {"one", {1}}, {"few", {3}}, {"empty", {0, 2}}, {"many", {7, 29}}};
         Parameters model(shapes, 0.0);
         Parallel parallel(model, group, {.stage = GetParam()});
         torch::Tensor loss = torch::zeros({});
         for (const auto& [name, shape] : shapes) {
           loss = loss + model[name].sum() * rank_factor(group);
         }
         loss.backward();
         Values result;
         for (const auto& [name, shape] : shapes) {
           const torch::Tensor gradient = parallel.full_grad(name);
           EXPECT_EQ(gradient.sizes(), torch::IntArrayRef(shape)) << name;
           append(result, values_of(gradient));
         }
         parallel.grad_norm();
         return result;
       })) {
    EXPECT_EQ(values, Values(1 + 1 + 3 + 7 * 29, 2.5));
  }
}

TEST_P(Stages, LocalGradsAreTheKeptElementsOfTheFullOne) {
  for (const Values& values : run(3, [](Group& group) {
         Parameters model(Shapes{{"a", {500}}, {"b", {5}}}, 0.0);
         Parallel parallel(model, group, {.stage = GetParam()});
         EXPECT_NE(error_of([&] { parallel.local_grad("a"); }).find("outside of a step"),
                   std::string::npos);
         ((model["a"] * torch::arange(500)).sum() + model["b"].sum()).backward();
         const LocalGradient local = parallel.local_grad("a");
         const torch::Tensor full = parallel.full_grad("a");
         EXPECT_EQ(values_of(full), values_of(torch::arange(500)));
         EXPECT_EQ(values_of(local.values),
                   values_of(full.narrow(0, local.begin, local.end - local.begin)));
         EXPECT_NE(error_of([&] { parallel.full_grad("c"); }).find("'c'"), std::string::npos);
         return Values{static_cast<double>(local.end - local.begin)};
       })) {
    EXPECT_EQ(values.at(0) < 500, GetParam() != Stage::ddp);
  }
}

TEST_P(Stages, AddBackwardsUnderNoSync) {
  for (const Precision& precision : {Precision::f32(), Precision::bf16_mixed()}) {
    for (const Values& values : run(2, [&](Group& group) {
           Parameters model(Shapes{{"a", {}}, {"b", {}}});
           Parallel parallel(model, group, {.stage = GetParam(), .precision = precision});
           SGD optimizer = parallel.sgd({.lr = 1.0});
           Values result;
           for (int step = 0; step < 2; ++step) {
             {
               const auto accumulating = parallel.no_sync();
               (model["a"] * 2 * rank_factor(group)).backward();
             }
             ((model["a"] * 4 + model["b"]) * rank_factor(group)).backward();
             append(result, values_of(parallel.full_grad("a")));
             append(result, values_of(parallel.full_grad("b")));
             optimizer.step();
             ((model["a"] + model["b"]) * rank_factor(group)).backward();  // and without
             append(result, values_of(parallel.full_grad("a")));
             optimizer.step();
           }
           append(result, values_of(parallel.full_parameter("a")));
           return result;
         })) {
      EXPECT_EQ(values, (Values{9, 1.5, 1.5, 9, 1.5, 1.5, -21}));
    }
  }
}

TEST(Sharded, AnotherBackwardBeforeTheStepIsRefusedByName) {
  for (const Stage stage : {Stage::zero1, Stage::zero2, Stage::zero3}) {
    run(2, [stage](Group& group) {
      Parameters model(Shapes{{"a", {}}});
      Parallel parallel(model, group, {.stage = stage});
      SGD optimizer = parallel.sgd({.lr = 1.0});
      model["a"].backward();
      const std::string error = error_of([&] { model["a"].backward(); });
      EXPECT_NE(error.find(std::string(name_of(stage))), std::string::npos) << error;
      EXPECT_NE(error.find("no_sync()"), std::string::npos) << error;
      optimizer.zero_grad();
      (model["a"] * rank_factor(group)).backward();
      optimizer.step();
      EXPECT_EQ(model["a"].item<double>(), -1.5);
      return Values{};
    });
  }
}

// Several backwards of a micro-batch are one leaf; where leaves travel at once only without
// overlap.
TEST_P(Stages, TakeSeveralBackwardsOfAMicroBatch) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"a", {}}, {"b", {}}});
         ParallelOptions options{.stage = GetParam(), .bucket_mb = 0};
         options.overlap = GetParam() < Stage::zero2;
         Parallel parallel(model, group, options);
         SGD optimizer = parallel.sgd({.lr = 0.5});
         Values result;
         for (int step = 0; step < 2; ++step) {
           for (const MicroStep& micro : parallel.micro_steps(2)) {
             const double leaf = static_cast<double>(micro.leaf);
             (model["a"] * leaf).backward();
             ((model["a"] + model["b"]) * 10 * leaf).backward();
           }
           append(result, values_of(parallel.full_grad("a")));
           append(result, values_of(parallel.full_grad("b")));
           optimizer.step();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{16.5, 15, 16.5, 15}));
  }
}

TEST(Zero2, NamesOverlapWhenAMicroBatchHasSeveralBackwards) {
  run(2, [](Group& group) {
    Parameters model(Shapes{{"a", {}}});
    Parallel parallel(model, group, {.stage = Stage::zero2});
    std::string error;
    for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps(1)) {
      model["a"].backward();
      error = error_of([&] { model["a"].backward(); });
    }
    EXPECT_NE(error.find("--overlap off"), std::string::npos) << error;
    return Values{};
  });
}

// A15: ranks with different numbers of tokens, one of them without any.
TEST_P(Stages, A15_weigh_leaves_by_their_tokens) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = GetParam()});
         const std::int64_t tokens = group.rank() == 0 ? 4 : 0;
         for (const MicroStep& micro : parallel.weighted_micro_steps({tokens, 2})) {
           if (micro.weight > 0) {
             (model["w"] * static_cast<double>(micro.weight) * (micro.weight == 4 ? 1 : 3))
                 .backward();
           }
         }
         return values_of(parallel.full_grad("w"));
       })) {
    EXPECT_EQ(values, Values{(4 * 1 + 2 * 3 + 2 * 3) / 8.0});
  }
}

// The tree over leaves, whichever rank has which: 1e16 - 1e16 + (1 + 1), as no other order gives.
TEST_P(Stages, AddLossesInTheTreeOfLeaves) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = GetParam()});
         constexpr std::array kOfLeaf{1e16, -1e16, 1.0, 1.0};
         Values losses;
         for (const MicroStep& micro : parallel.micro_steps(2)) {
           model["w"].backward();
           losses.push_back(kOfLeaf.at(static_cast<std::size_t>(micro.leaf)));
         }
         return Values{parallel.mean_loss(losses)};
       })) {
    EXPECT_EQ(values, Values{0.5});
  }
}

TEST_P(Stages, TakeInWhatIsUnfrozenLater) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"a", {70}}, {"late", {70}}}, 1.0);
         model["late"].set_requires_grad(false);
         Parallel parallel(model, group, {.stage = GetParam(), .precision = bf16()});
         SGD optimizer = parallel.sgd({.lr = 1.0, .momentum = 0.5});
         for (int step = 0; step < 3; ++step) {
           model["late"].set_requires_grad(step > 0);
           ((model["a"] + model["late"]).sum() * rank_factor(group)).backward();
           optimizer.step();
         }
         Values result;
         for (const char* name : {"a", "late"}) {
           result.push_back(parallel.full_parameter(name)[69].item<double>());
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{1 - 1.5 - 2.25 - 2.625, 1 - 1.5 - 2.25}));
  }
}

TEST_P(Stages, RunOptimizersOfTorch) {
  const auto train_with = [](Stage stage) {
    return run(2, [stage](Group& group) {
      torch::manual_seed(3);
      Perceptron model(20, 2);
      Parallel parallel(model, group, {.stage = stage, .precision = bf16()});
      auto optimizer =
          parallel.optimizer<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.01));
      for (int step = 0; step < 3; ++step) {
        const auto x = torch::full({4, 20}, rank_factor(group)).to(torch::kBFloat16);
        (model(x) - 1).pow(2).mean().backward();
        parallel.clip_grad_norm(0.1);
        optimizer.step();
      }
      Values result;
      for (const auto& item : model->named_parameters()) {
        append(result, values_of(parallel.full_parameter(item.key())));
      }
      return result;
    });
  };
  EXPECT_EQ(train_with(GetParam()), train_with(Stage::ddp));
}

// The ledger's reason: full precision, moments and (zero2) gradients are divided.
TEST_P(Stages, HoldWhatTheyPromise) {
  for (const Values& values : run(4, [](Group& group) {
         Parameters model(Shapes{{"w", {64 * 400}}}, 1.0);
         Parallel parallel(model, group,
                           {.stage = GetParam(), .precision = Precision::bf16_mixed()});
         AdamW optimizer = parallel.adamw();
         const HeldBytes held = parallel.held();
         const double n = 64 * 400;
         return Values{
             static_cast<double>(held.parameters) / n, static_cast<double>(held.gradients) / n,
             static_cast<double>(held.optimizer) / n, static_cast<double>(held.transient) / n};
       })) {
    const bool sharded = GetParam() != Stage::ddp;
    const bool in_shards = GetParam() == Stage::zero2 || GetParam() == Stage::zero3;
    EXPECT_EQ(values, (Values{GetParam() == Stage::zero3 ? 0.5 : 2, in_shards ? 0.5 : 2,
                              sharded ? 3.0 : 12, in_shards ? 4.0 : 0}));
  }
}

// One copy on the host: nothing but memory is different.
TEST_P(Stages, ShareParametersWithTheSameBits) {
  for (const Precision& precision : {Precision::f32(), bf16()}) {
    for (const int ranks : {1, 3, 4}) {
      ParallelOptions options{.stage = Stage::ddp, .precision = precision, .seed = 3};
      const Values expected = train_everywhere({ranks, 1, options});
      options.stage = GetParam();
      options.share_parameters = true;
      options.bucket_mb = 0.005;
      EXPECT_EQ(expected, train_everywhere({ranks, 1, options}));
    }
  }
}

TEST_P(Stages, HoldAShardOfSharedParametersAndTheirState) {
  for (const Values& values : run(4, [](Group& group) {
         Parameters model(Shapes{{"w", {64 * 400}}}, 1.0);
         ParallelOptions options{.stage = GetParam(), .precision = Precision::bf16_mixed()};
         options.share_parameters = true;
         Parallel parallel(model, group, options);
         AdamW optimizer = parallel.adamw();
         const HeldBytes held = parallel.held();
         const double n = 64 * 400;
         return Values{static_cast<double>(held.parameters) / n,
                       static_cast<double>(held.optimizer) / n};
       })) {
    EXPECT_EQ(values, (Values{0.5, 3.0}));
  }
}

// Units are what travels, in the order backward meets them; what lies outside comes last.
struct BlocksImpl : torch::nn::Module {
  BlocksImpl() {
    first = register_parameter("first", torch::randn({40, 40}) / 6);
    for (int i = 0; i < 5; ++i) {
      blocks.push_back(
          register_module("block" + std::to_string(i), Unit<torch::nn::Linear>(40, 40)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x.matmul(first);
    for (auto& block : blocks) {
      x = torch::gelu(block(x));
    }
    return x;
  }
  torch::Tensor first;
  std::vector<Unit<torch::nn::Linear>> blocks;
};
TORCH_MODULE(Blocks);

Values train_blocks(Group& group, const ParallelOptions& options) {
  torch::manual_seed(7);
  Blocks model;
  Parallel parallel(model, group, options);
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  Values result{static_cast<double>(parallel.buckets())};
  for (int step = 0; step < 4; ++step) {
    const auto x = torch::full({3, 40}, rank_factor(group)).to(model->first.scalar_type());
    (model(x) - 1).pow(2).mean().backward();
    result.push_back(parallel.clip_grad_norm(0.5));
    optimizer.step();
  }
  for (const auto& item : model->named_parameters()) {
    append(result, values_of(parallel.full_parameter(item.key())));
  }
  return result;
}

TEST(Zero3, ReducesUnitByUnitWithTheBitsOfDdp) {
  for (const Precision& precision : {Precision::f32(), Precision::bf16_mixed()}) {
    const auto train_with = [&](Stage stage, std::int64_t unit_blocks, bool overlap) {
      ParallelOptions options{.stage = stage, .precision = precision};
      options.unit_blocks = unit_blocks;
      options.overlap = overlap;
      return run(3, [&](Group& group) { return train_blocks(group, options); }).at(0);
    };
    Values ddp = train_with(Stage::ddp, 1, true);
    for (const auto& [unit_blocks, buckets] : {std::pair{1, 6.0}, {2, 4.0}, {9, 2.0}}) {
      for (const bool overlap : {true, false}) {
        ddp[0] = buckets;
        EXPECT_EQ(train_with(Stage::zero3, unit_blocks, overlap), ddp) << unit_blocks;
      }
    }
  }
}

// Each rank writes its shard into memory that all read.
TEST_P(Stages, SetASharedParameterWhenEveryRankHasWritten) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {100}}}, 1.0);
         ParallelOptions options{.stage = GetParam()};
         options.share_parameters = true;
         Parallel parallel(model, group, options);
         if (group.rank() == 1) {
           std::this_thread::sleep_for(std::chrono::milliseconds(50));
         }
         parallel.set_parameter("w", torch::full({100}, 3.0f));
         return values_of(model["w"]);
       })) {
    EXPECT_EQ(values, Values(100, 3.0));
  }
}

TEST(SharedParametersDeathTest, AWriteNamesTheParameter) {
  Group alone = Group::alone();
  at::set_num_threads(1);
  for (const auto& [stage, where] :
       {std::pair{Stage::zero3, "in zero3"}, {Stage::ddp, "with share_parameters"}}) {
    Parameters model(Shapes{{"a", {100}}, {"b", {100}}}, 1.0);
    ParallelOptions options{.stage = stage};
    options.share_parameters = stage != Stage::zero3;
    Parallel parallel(model, alone, options);
    const torch::NoGradGuard no_grad;
    // By the signal, or by a sanitizer that has it.
    const auto died = [](int status) { return status != 0; };
    EXPECT_EXIT(
        model["b"].add_(1), died,
        std::string("lockstep: parameter 'b' was written to: ") + where + " .*set_parameter");
    parallel.set_parameter("b", torch::full({100}, 3.0f));
    EXPECT_EQ(model["b"][99].item<float>(), 3.0f);
  }
}

}  // namespace
}  // namespace lockstep
