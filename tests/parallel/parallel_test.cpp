#include "lockstep/parallel.h"

#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

namespace lockstep {
namespace {

using test::append;
using test::ddp;
using test::error_of;
using test::Parameters;
using test::Perceptron;
using test::rank_factor;
using test::RankResult;
using test::run;
using test::run_ranks;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;

TEST(Parallel, BaseCaseMeanOverRanks) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, ddp());
         (model["w"] * rank_factor(group)).backward();
         return values_of(model["w"].grad());
       })) {
    EXPECT_EQ(values, Values{1.5});
  }
}

TEST(Parallel, P60_ddp_needs_no_python_in_the_process) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, ddp());
         (model["w"] * rank_factor(group)).backward();
         std::ifstream maps("/proc/self/maps");
         const std::string text(std::istreambuf_iterator<char>(maps), {});
         return Values{model["w"].grad().item<double>(),
                       static_cast<double>(text.find("libtorch_cpu") != std::string::npos),
                       static_cast<double>(text.find("python.so") != std::string::npos),
                       static_cast<double>(text.find("libpython") != std::string::npos)};
       })) {
    EXPECT_EQ(values, (Values{1.5, 1, 0, 0}));
  }
}

TEST(Parallel, G1_parameters_used_in_different_micro_batches) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"a", {}}, {"b", {}}});
         Parallel parallel(model, group, ddp());
         {
           const auto accumulating = parallel.no_sync();
           (model["a"] * rank_factor(group)).backward();
         }
         (model["b"] * 10 * rank_factor(group)).backward();
         Values result = values_of(model["a"].grad());
         append(result, values_of(model["b"].grad()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 15}));
  }
}

TEST(Parallel, G2_unused_parameter_needs_no_flag) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}, {"b", {}}}, 1.0);
         Parallel parallel(model, group, ddp());
         AdamW optimizer = parallel.adamw({.lr = 0.1, .weight_decay = 0.5});
         Values result;
         for (int step = 0; step < 3; ++step) {
           (model["w"] * rank_factor(group)).backward();
           append(result, values_of(model["w"].grad()));
           result.push_back(model["b"].grad().defined());
           optimizer.step();
         }
         result.push_back(model["w"].item<double>() < 1.0);
         append(result, values_of(model["b"]));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 0, 1.5, 0, 1.5, 0, 1, 1.0}));
  }
}

TEST(Parallel, ParameterUsedOnSomeRanksGetsTheMeanOverAll) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}, {"b", {}}});
         Parallel parallel(model, group, ddp());
         Values result;
         for (int step = 0; step < 2; ++step) {
           torch::Tensor loss = model["w"] * rank_factor(group);
           if (group.rank() == 1) {
             loss = loss + model["b"] * 4;
           }
           loss.backward();
           append(result, values_of(model["b"].grad()));
           model->zero_grad();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{2, 2}));
  }
}

TEST(Parallel, RankWithoutAnyBackwardStillJoinsTheStep) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 1.0);
         Parallel parallel(model, group, ddp());
         AdamW optimizer = parallel.adamw({.lr = 0.5, .weight_decay = 0.0});
         if (group.rank() == 0) {
           (model["w"] * 4).backward();
         }
         const double norm = parallel.clip_grad_norm(100);
         optimizer.step();
         return Values{norm, model["w"].item<double>()};
       })) {
    ASSERT_EQ(values.size(), 2u);
    EXPECT_EQ(values[0], 2.0);
    EXPECT_NEAR(values[1], 0.5, 1e-6);
  }
}

TEST(Parallel, G8_different_parameter_lists_are_named_on_both_ranks) {
  const auto results = run_ranks(2, [](Group& group) {
    Parameters model = group.rank() == 0 ? Parameters(Shapes{{"a", {2}}, {"b", {2}}, {"c", {2}}})
                                         : Parameters(Shapes{{"a", {2}}, {"b", {2}}});
    Parallel parallel(model, group, ddp());
    return Values{};
  });
  for (const RankResult& result : results) {
    EXPECT_NE(result.error.find("rank 0 has 3"), std::string::npos) << result.error;
    EXPECT_NE(result.error.find("rank 1 has 2"), std::string::npos) << result.error;
    EXPECT_NE(result.error.find("number 3: 'c [2]"), std::string::npos) << result.error;
  }
}

TEST(Parallel, G8_different_shape_is_named) {
  const auto results = run_ranks(2, [](Group& group) {
    Parameters model(Shapes{{"a", {2}}, {"b", {group.rank() == 0 ? 3 : 4}}});
    Parallel parallel(model, group, ddp());
    return Values{};
  });
  for (const RankResult& result : results) {
    EXPECT_NE(result.error.find("'b [3]"), std::string::npos) << result.error;
    EXPECT_NE(result.error.find("'b [4]"), std::string::npos) << result.error;
  }
}

void expect_scalar_shapes_average(int ranks, Stage stage, double mean) {
  for (const Values& values : run(ranks, [stage](Group& group) {
         Parameters model(Shapes{{"p0", {}}, {"p1", {1}}, {"p2", {1, 1}}});
         Parallel parallel(model, group, {.stage = stage});
         torch::Tensor loss = torch::zeros({});
         for (const char* name : {"p0", "p1", "p2"}) {
           loss = loss + model[name].sum() * rank_factor(group);
         }
         loss.backward();
         Values result;
         for (const char* name : {"p0", "p1", "p2"}) {
           append(result, values_of(model[name].grad()));
           result.push_back(static_cast<double>(model[name].grad().dim()));
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{mean, 0, mean, 1, mean, 2}));
  }
}

TEST(Parallel, G10_scalar_shapes_single) { expect_scalar_shapes_average(1, Stage::single, 1.0); }
TEST(Parallel, G10_scalar_shapes_ddp_alone) { expect_scalar_shapes_average(1, Stage::ddp, 1.0); }
TEST(Parallel, G10_scalar_shapes_ddp) { expect_scalar_shapes_average(4, Stage::ddp, 2.5); }

TEST(Parallel, A12_only_the_last_micro_batch_exchanges) {
  const auto collectives = [](std::int64_t k, std::int64_t backwards) {
    const auto all = run(2, [k, backwards](Group& group) {
      Perceptron model(8, 2);
      Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = 0});
      AdamW optimizer = parallel.adamw();
      const std::int64_t before = group.traffic().collectives;
      Values grads;
      for (std::int64_t step = 0; step < backwards / k; ++step) {
        for (const MicroStep& micro : parallel.micro_steps(k)) {
          const auto x = torch::ones({2, 8}) * static_cast<double>(1 + micro.leaf);
          model(x).pow(2).mean().backward();
          grads.push_back(model->linears[0]->weight.grad().defined());
        }
        append(grads, values_of(model->linears[0]->weight.grad()));
        optimizer.step();
      }
      grads.push_back(static_cast<double>(group.traffic().collectives - before));
      return grads;
    });
    EXPECT_EQ(all[0], all[1]);
    // Inside the loop no micro-batch shows an unsynchronised gradient.
    EXPECT_EQ(all[0].at(0), 0.0);
    return all[0].back();
  };
  // Several steps: in the first one no bucket starts before its end.
  const double every = collectives(1, 12);
  const double fourth = collectives(4, 12);
  EXPECT_EQ(every, 4 * fourth);
  EXPECT_GT(fourth, 0);
}

TEST(Parallel, A14_ddp_sum_and_mean_over_micro_batches_in_every_step) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, ddp());
         Values result;
         const double factor = rank_factor(group);
         for (int step = 0; step < 2; ++step) {
           for (int micro = 1; micro <= 3; ++micro) {
             const auto accumulating = parallel.no_sync();
             (model["w"] * micro * factor).backward();
           }
           (model["w"] * 4 * factor).backward();
           append(result, values_of(model["w"].grad()));
           model->zero_grad();
           for (const MicroStep& micro : parallel.micro_steps(4)) {
             (model["w"] * static_cast<double>(micro.index + 1) * factor).backward();
           }
           append(result, values_of(model["w"].grad()));
           result.push_back(parallel.grad_norm());
           model->zero_grad();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{15, 3.75, 3.75, 15, 3.75, 3.75}));
  }
}

TEST(Parallel, A23b_fp32_master_keeps_small_updates) {
  for (const Values& values : run(1, [](Group& group) {
         Parameters model(Shapes{{"w", {1}}}, 1.0);
         Parallel parallel(model, group,
                           {.stage = Stage::single, .precision = Precision::bf16_mixed()});
         // With both betas 0 each update is lr times the gradient's sign.
         AdamW optimizer =
             parallel.adamw({.lr = 0.001, .beta1 = 0, .beta2 = 0, .eps = 0, .weight_decay = 0});
         for (int step = 0; step < 500; ++step) {
           model["w"].sum().backward();
           optimizer.step();
         }
         return Values{parallel.full_parameter("w").item<double>(), model["w"].item<double>(),
                       static_cast<double>(model["w"].scalar_type() == torch::kBFloat16)};
       })) {
    ASSERT_EQ(values.size(), 3u);
    EXPECT_NEAR(values[0], 0.5, 1e-4);
    EXPECT_EQ(values[1], 0.5);
    EXPECT_EQ(values[2], 1.0);
  }
}

void expect_all_ranks_skip(double poison) {
  const auto all = run(2, [poison](Group& group) {
    Perceptron model(8, 2);
    Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = 0});
    AdamW optimizer = parallel.adamw({.lr = 0.1});
    Values result;
    for (int step = 0; step < 5; ++step) {
      const auto before = parallel.full_parameter("linear0.weight").clone();
      const bool bad = step == 3 && group.rank() == 1;
      (model(torch::ones({2, 8})).pow(2).mean() * (bad ? poison : 1.0)).backward();
      parallel.clip_grad_norm(1.0);
      optimizer.step();
      result.push_back(parallel.last_step().skipped);
      result.push_back(torch::equal(before, parallel.full_parameter("linear0.weight")));
    }
    append(result, values_of(parallel.full_parameter("linear1.weight")));
    return result;
  });
  EXPECT_EQ(all[0], all[1]);
  const Values flags(all[0].begin(), all[0].begin() + 10);
  EXPECT_EQ(flags, (Values{0, 0, 0, 0, 0, 0, 1, 1, 0, 0}));
}

TEST(Parallel, A26_infinity_on_one_rank_skips_the_step_everywhere) {
  expect_all_ranks_skip(std::numeric_limits<double>::infinity());
}

TEST(Parallel, A26_nan_on_one_rank_skips_the_step_everywhere) {
  expect_all_ranks_skip(std::numeric_limits<double>::quiet_NaN());
}

TEST(Parallel, C34_bucket_sizes_do_not_change_the_sum) {
  const auto gradient = [](double bucket_mb) {
    return run(4, [bucket_mb](Group& group) {
      Parameters model(Shapes{{"a", {1000}}, {"b", {70}}});
      Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = bucket_mb});
      const float values[] = {1e8f, 1.0f, -1e8f, 1.0f};
      const float mine = values[group.rank()];
      (model["a"].sum() * mine + model["b"].sum() * mine).backward();
      return Values{model["a"].grad()[999].item<double>(), model["b"].grad()[69].item<double>()};
    });
  };
  for (const double bucket_mb : {0.0, 0.001, 25.0}) {
    for (const Values& values : gradient(bucket_mb)) {
      // (1e8 + 1) + (−1e8 + 1) in fp32, where 1e8 + 1 rounds to 1e8 and −1e8 + 1 to −1e8.
      EXPECT_EQ(values, (Values{0.0, 0.0}));
    }
  }
}

TEST(Parallel, ExceptionInAForwardLeavesTheNextStepClean) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, ddp());
         try {
           for (const MicroStep& micro : parallel.micro_steps(2)) {
             (model["w"] * 100).backward();
             if (micro.index == 0) {
               throw std::runtime_error("the program's own");
             }
           }
         } catch (const std::runtime_error&) {
         }
         for (const MicroStep& micro : parallel.micro_steps(2)) {
           (model["w"] * (rank_factor(group) + 0.0 * static_cast<double>(micro.leaf))).backward();
         }
         return values_of(model["w"].grad());
       })) {
    EXPECT_EQ(values, Values{1.5});
  }
}

TEST(Parallel, ZeroGradDiscardsWhatWasAccumulated) {
  for (const Values& values : run(1, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = Stage::single});
         AdamW optimizer = parallel.adamw();
         {
           const auto accumulating = parallel.no_sync();
           (model["w"] * 100).backward();
         }
         optimizer.zero_grad();
         (model["w"] * 2).backward();
         return values_of(model["w"].grad());
       })) {
    EXPECT_EQ(values, Values{2});
  }
}

TEST(Parallel, MicroBatchesCutTheBatch) {
  for (const Values& values : run(1, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = Stage::single});
         const torch::data::Example<> batch(torch::arange(6, torch::kFloat32),
                                            torch::ones({6}) * 2);
         Values result;
         for (auto& micro : parallel.micro_batches(batch, 3)) {
           append(result, values_of(micro.data));
           (model["w"] * micro.data.mean() + micro.target.mean()).backward();
         }
         append(result, values_of(model["w"].grad()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{0, 1, 2, 3, 4, 5, 2.5}));
  }
}

TEST(Parallel, ClippingWithoutOurOptimizerScalesGradInPlace) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {2}}});
         Parallel parallel(model, group, ddp());
         (model["w"] * torch::tensor({3.0f, 4.0f})).sum().backward();
         Values result{parallel.clip_grad_norm(1.0)};
         append(result, values_of(model["w"].grad()));
         return result;
       })) {
    ASSERT_EQ(values.size(), 3u);
    EXPECT_EQ(values[0], 5.0);
    EXPECT_NEAR(values[1], 0.6, 1e-6);
    EXPECT_NEAR(values[2], 0.8, 1e-6);
  }
}

TEST(Parallel, NormSeesWhatTheProgramDidToGrad) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {2}}});
         Parallel parallel(model, group, ddp());
         (model["w"] * torch::tensor({3.0f, 40.0f})).sum().backward();
         {
           const torch::NoGradGuard no_grad;
           model["w"].grad().clamp_(-4, 4);
         }
         return Values{parallel.grad_norm()};
       })) {
    EXPECT_EQ(values, Values{5.0});
  }
}

TEST(Parallel, RefusesWhatItCannotDo) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}});
  EXPECT_NE(error_of([&] { Parallel(model, group, {.stage = Stage::hybrid}); }).find("hybrid"),
            std::string::npos);
  Parallel parallel(model, group, {.stage = Stage::single, .reproducible = true});
  EXPECT_NE(error_of([&] { parallel.micro_steps(3).begin(); }).find("power of two"),
            std::string::npos);
  EXPECT_NE(error_of([&] { parallel.micro_steps(0).begin(); }).find("k ≥ 1"), std::string::npos);
  EXPECT_NE(error_of([&] { Parallel(model, group, {}); }).find("another Parallel"),
            std::string::npos);
  EXPECT_NE(error_of([&] { parallel.clip_grad_norm(-1); }).find("> 0"), std::string::npos);
  AdamW optimizer = parallel.adamw();
  EXPECT_NE(error_of([&] { parallel.adamw(); }).find("exactly one"), std::string::npos);
  model->to(torch::kFloat64);
  EXPECT_NE(error_of([&] { parallel.micro_steps(1).begin(); }).find("'w'"), std::string::npos);
}

TEST(Parallel, CountsOnFromAStepAndDrawsItsDropout) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}});
  Parallel parallel(model, group, {.stage = Stage::single, .seed = 3});
  AdamW optimizer = parallel.adamw();
  const auto draw = [&] {
    double drawn = 0;
    for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps()) {
      drawn = torch::rand({1}).item<double>();
      model["w"].sum().backward();
    }
    optimizer.step();
    return drawn;
  };
  EXPECT_EQ(parallel.steps(), 0);
  const double first = draw();
  const double second = draw();
  EXPECT_EQ(parallel.steps(), 2);
  EXPECT_NE(first, second);
  model["w"].sum().backward();
  parallel.resume_at(1);
  EXPECT_EQ(parallel.steps(), 1);
  EXPECT_FALSE(model["w"].grad().defined()) << "what was collected belongs to another state";
  EXPECT_EQ(draw(), second);
}

TEST(Parallel, SetsParametersByName) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}});
  Parallel parallel(model, group, {.stage = Stage::single});
  parallel.set_parameter("w", torch::tensor({1.0f, 2.0f}));
  EXPECT_EQ(values_of(model["w"]), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(parallel.full_parameter("w")), (std::vector<double>{1, 2}));
  EXPECT_NE(error_of([&] { parallel.set_parameter("v", torch::ones({2})); }).find("'v'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { parallel.set_parameter("w", torch::ones({3})); }).find("[3]"),
            std::string::npos);
  EXPECT_EQ(&parallel.module(), model.ptr().get());
  EXPECT_EQ(&parallel.group(), &group);
}

TEST(Parallel, G11_module_without_trainable_parameters_is_one_plain_line) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}});
  model["w"].set_requires_grad(false);
  const std::string error = error_of([&] { Parallel(model, group, {.stage = Stage::single}); });
  EXPECT_NE(error.find("no trainable parameter"), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace lockstep
