// The shapes of training loops: several backwards, two models, gradients of gradients, exceptions.
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

using test::append;
using test::ddp;
using test::error_of;
using test::Parameters;
using test::Perceptron;
using test::rank_factor;
using test::run;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;

TEST(Loops, SeveralBackwardsOfAPlainLoopAddUpAsInTorch) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"a", {}}, {"b", {}}, {"c", {}}});
         Parallel parallel(model, group, ddp(0));
         SGD optimizer = parallel.sgd({.lr = 0.5});
         Values result;
         for (int step = 0; step < 3; ++step) {
           ((model["a"] + model["b"]) * rank_factor(group)).backward();
           ((model["b"] + model["c"]) * 10 * rank_factor(group)).backward();
           for (const char* name : {"a", "b", "c"}) {
             append(result, values_of(model[name].grad()));
           }
           optimizer.step();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 16.5, 15, 1.5, 16.5, 15, 1.5, 16.5, 15}));
  }
}

TEST(Loops, NoSyncAfterAnExchangeAddsToWhatGradHolds) {
  for (const Precision& precision : {Precision::f32(), Precision::bf16_mixed()}) {
    for (const Values& values : run(2, [&](Group& group) {
           Parameters model(Shapes{{"a", {}}, {"b", {}}});
           Parallel parallel(model, group, {.stage = Stage::ddp, .precision = precision});
           ((model["a"] + model["b"]) * rank_factor(group)).backward();
           {
             const auto accumulating = parallel.no_sync();
             (model["a"] * 2 * rank_factor(group)).backward();
           }
           (model["a"] * 4 * rank_factor(group)).backward();
           Values result = values_of(model["a"].grad());
           append(result, values_of(model["b"].grad()));
           return result;
         })) {
      EXPECT_EQ(values, (Values{10.5, 1.5}));
    }
  }
}

void expect_several_backwards_in_a_micro_batch(bool reproducible) {
  for (const Values& values : run(2, [reproducible](Group& group) {
         Parameters model(Shapes{{"a", {}}, {"b", {}}});
         Parallel parallel(model, group,
                           {.stage = Stage::ddp, .bucket_mb = 0, .reproducible = reproducible});
         SGD optimizer = parallel.sgd({.lr = 0.5});
         Values result;
         for (int step = 0; step < 3; ++step) {
           for (const MicroStep& micro : parallel.micro_steps(2)) {
             const double leaf = static_cast<double>(micro.leaf);
             (model["a"] * leaf).backward();
             ((model["a"] + model["b"]) * 10 * leaf).backward();
           }
           append(result, values_of(model["a"].grad()));
           append(result, values_of(model["b"].grad()));
           optimizer.step();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{16.5, 15, 16.5, 15, 16.5, 15}));
  }
}

TEST(Loops, SeveralBackwardsInAMicroBatchAreOneLeaf) {
  expect_several_backwards_in_a_micro_batch(/*reproducible=*/false);
  expect_several_backwards_in_a_micro_batch(/*reproducible=*/true);
}

TEST(Loops, NoSyncWithThreeBackwardsOfAReproducibleParallelLosesNothing) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         Parallel parallel(model, group, {.stage = Stage::ddp, .reproducible = true});
         for (int i = 1; i <= 2; ++i) {
           const auto accumulating = parallel.no_sync();
           (model["w"] * i * rank_factor(group)).backward();
         }
         (model["w"] * 4 * rank_factor(group)).backward();
         return values_of(model["w"].grad());
       })) {
    EXPECT_EQ(values, Values{10.5});
  }
}

class LoopsOfEveryStage : public testing::TestWithParam<Stage> {};
INSTANTIATE_TEST_SUITE_P(Loops, LoopsOfEveryStage,
                         testing::Values(Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3),
                         [](const auto& stage) { return std::string(name_of(stage.param)); });

TEST_P(LoopsOfEveryStage, A14_sum_under_no_sync_and_mean_over_micro_batches_in_every_step) {
  const ParallelOptions options{.stage = GetParam()};
  for (const Values& values : run(2, [options](Group& group) {
         Parameters model(Shapes{{"w", {300}}});
         Parallel parallel(model, group, options);
         SGD optimizer = parallel.sgd({.lr = 0.5});
         const double factor = rank_factor(group);
         Values result;
         const auto note = [&] {
           const Values kept = values_of(parallel.local_grad("w").values);
           result.push_back(kept == Values(kept.size(), kept.at(0)) ? kept.at(0) : -1);
           result.push_back(parallel.grad_norm() / std::sqrt(300.0));
           optimizer.zero_grad();
         };
         for (int step = 0; step < 2; ++step) {
           for (int micro = 1; micro <= 3; ++micro) {
             const auto accumulating = parallel.no_sync();
             (model["w"].sum() * micro * factor).backward();
           }
           (model["w"].sum() * 4 * factor).backward();
           note();
           for (const MicroStep& micro : parallel.micro_steps(4)) {
             (model["w"].sum() * static_cast<double>(micro.index + 1) * factor).backward();
           }
           note();
         }
         return result;
       })) {
    ASSERT_EQ(values.size(), 8u);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], i % 4 < 2 ? 15 : 3.75, 1e-5) << i;
    }
  }
}

// In fp64, since the two sides chase each other and magnify every rounding.
struct Gan {
  Gan() {
    generator->to(torch::kFloat64);
    critic->to(torch::kFloat64);
  }
  Perceptron generator{4, 1};
  Perceptron critic{4, 2};
};

// One round of a critic with gradient penalty (Gulrajani et al. 2017) and a generator; `update` is
// told which of the two has its gradients.
enum class Side { critic, generator };

torch::Tensor score(Perceptron& critic, const torch::Tensor& x) { return critic(x).mean(); }

// What the critic's first backward runs in.
using Scope = std::function<void(const std::function<void()>& backward)>;

void train_round(Gan& gan, std::int64_t sample, const Scope& first_backward,
                 const std::function<void(Side)>& update) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(sample + 1));
  const auto real = torch::randn({3, 4}, generator, torch::kFloat64) + 1;
  const auto noise = torch::randn({3, 4}, generator, torch::kFloat64);
  const torch::Tensor fake = gan.generator(noise);
  const torch::Tensor between = (0.5 * real + 0.5 * fake).detach().set_requires_grad(true);
  const auto slope = torch::autograd::grad({gan.critic(between).sum()}, {between}, {},
                                           /*retain_graph=*/true, /*create_graph=*/true)[0];
  const torch::Tensor penalty = (slope.norm(2, 1) - 1).pow(2).mean();
  first_backward([&] { score(gan.critic, fake.detach()).backward(); });
  (10 * penalty - score(gan.critic, real)).backward();
  update(Side::critic);
  (-score(gan.critic, gan.generator(noise))).backward();
  update(Side::generator);
}

Values weights_of(const Gan& gan) {
  Values result;
  for (const Perceptron& model : {gan.generator, gan.critic}) {
    for (const torch::Tensor& parameter : model->parameters()) {
      append(result, values_of(parameter));
    }
  }
  return result;
}

// The gradient of two ranks' samples is the mean of both, computed here without Lockstep.
Values train_gan_plainly(int ranks) {
  torch::manual_seed(3);
  Gan gan;
  torch::optim::SGD critic(gan.critic->parameters(), torch::optim::SGDOptions(0.05));
  torch::optim::SGD generator(gan.generator->parameters(), torch::optim::SGDOptions(0.05));
  for (int round = 0; round < 4; ++round) {
    // Both ranks' critics step before either generator does.
    std::vector<torch::Tensor> critic_sum;
    const auto add = [&](Perceptron& model, std::vector<torch::Tensor>& sum) {
      std::size_t i = 0;
      for (torch::Tensor& parameter : model->parameters()) {
        const auto gradient = parameter.grad() / ranks;
        if (i < sum.size()) {
          sum[i] += gradient;
        } else {
          sum.push_back(gradient.clone());
        }
        ++i;
      }
    };
    const auto put = [](Perceptron& model, const std::vector<torch::Tensor>& sum) {
      std::size_t i = 0;
      for (torch::Tensor& parameter : model->parameters()) {
        parameter.mutable_grad() = sum[i++];
      }
    };
    const auto clear = [&] {
      gan.critic->zero_grad();
      gan.generator->zero_grad();
    };
    for (const Side wanted : {Side::critic, Side::generator}) {
      std::vector<torch::Tensor> sum;
      Perceptron& model = wanted == Side::critic ? gan.critic : gan.generator;
      for (int rank = 0; rank < ranks; ++rank) {
        train_round(
            gan, round * ranks + rank, [](const auto& backward) { backward(); },
            [&](Side side) {
              if (side == wanted) {
                add(model, sum);
              }
              clear();
            });
      }
      put(model, sum);
      (wanted == Side::critic ? critic : generator).step();
      clear();
    }
  }
  return weights_of(gan);
}

Values train_gan(Group& group, Stage stage) {
  torch::manual_seed(3);
  Gan gan;
  Group second = group.duplicate();
  Parallel critic(gan.critic, group, {.stage = stage});
  Parallel generator(gan.generator, second, {.stage = stage});
  SGD critic_optimizer = critic.sgd({.lr = 0.05});
  SGD generator_optimizer = generator.sgd({.lr = 0.05});
  for (int round = 0; round < 4; ++round) {
    const auto first_backward = [&](const std::function<void()>& backward) {
      const auto accumulating = critic.no_sync();
      backward();
    };
    train_round(gan, round * group.size() + group.rank(), first_backward, [&](Side side) {
      (side == Side::critic ? critic_optimizer : generator_optimizer).step();
      critic_optimizer.zero_grad();
      generator_optimizer.zero_grad();
    });
  }
  return weights_of(gan);
}

void expect_near(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
  }
}

TEST(Loops, GanWithGradientPenaltyEqualsPlainTorch) {
  for (const int ranks : {1, 2}) {
    // In a process of its own: this one may not start LibTorch's threads before it forks.
    const Values expected = run(1, [ranks](Group&) { return train_gan_plainly(ranks); }).at(0);
    Values of_first_stage;
    for (const Stage stage :
         {Stage::single, Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3}) {
      if (stage == Stage::single && ranks > 1) {
        continue;
      }
      for (const Values& values :
           run(ranks, [stage](Group& group) { return train_gan(group, stage); })) {
        of_first_stage = of_first_stage.empty() ? values : of_first_stage;
        EXPECT_EQ(values, of_first_stage) << name_of(stage);
        expect_near(values, expected);
      }
    }
  }
}

TEST(Loops, BackwardThatCreatesAGraphIsExchangedLikeAnyOther) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 3.0);
         Parallel parallel(model, group, ddp());
         const torch::Tensor loss = model["w"].pow(2) * rank_factor(group);
         loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
         Values result = values_of(model["w"].grad());
         result.push_back(model["w"].grad().requires_grad());
         return result;
       })) {
    EXPECT_EQ(values, (Values{9, 0}));
  }
}

// Throws in backward when told to.
struct Tripwire : torch::autograd::Function<Tripwire> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               bool trips) {
    context->saved_data["trips"] = trips;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (context->saved_data["trips"].toBool()) {
      throw std::runtime_error("tripped");
    }
    return {gradients[0], torch::Tensor()};
  }
};

// The second parameter's gradient comes first, then the wire, then the first parameter: backward
// runs what was made last first.
torch::Tensor wired_loss(Parameters& model, const Group& group, bool trips) {
  const torch::Tensor wired = Tripwire::apply(model["first"] * rank_factor(group), trips);
  const torch::Tensor factor = model["second"] + 1;
  return wired * factor;
}

void expect_clean_after_exception(bool reproducible, bool loops) {
  for (const Values& values : run(2, [=](Group& group) {
         Parameters model(Shapes{{"first", {}}, {"second", {}}});
         Parallel parallel(model, group,
                           {.stage = Stage::ddp, .bucket_mb = 0, .reproducible = reproducible});
         Values result;
         for (const bool trips : {false, true, false, true, true, false}) {
           try {
             if (loops) {
               for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps(2)) {
                 wired_loss(model, group, trips && micro.last).backward();
               }
             } else {
               wired_loss(model, group, trips).backward();
             }
             append(result, values_of(model["first"].grad()));
             append(result, values_of(model["second"].grad()));
             model->zero_grad();
           } catch (const std::runtime_error&) {
             result.push_back(-1);
           }
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 0, -1, 1.5, 0, -1, -1, 1.5, 0}));
  }
}

TEST(Loops, ExceptionInTheMiddleOfBackwardLeavesTheNextStepClean) {
  for (const bool reproducible : {false, true}) {
    for (const bool loops : {false, true}) {
      expect_clean_after_exception(reproducible, loops);
    }
  }
}

TEST(Loops, ExceptionInNoSyncDoesNotMakeTheNextBackwardExchange) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"first", {}}, {"second", {}}});
         Parallel parallel(model, group, ddp());
         Values result;
         {
           const auto accumulating = parallel.no_sync();
           EXPECT_THROW(wired_loss(model, group, true).backward(), std::runtime_error);
           wired_loss(model, group, false).backward();
           result.push_back(model["first"].grad().defined());
         }
         wired_loss(model, group, false).backward();
         append(result, values_of(model["first"].grad()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{0, 3}));
  }
}

TEST(Loops, StepAfterAFailedBackwardIsRefusedUntilGradientsAreDropped) {
  Group group = Group::alone();
  Parameters model(Shapes{{"first", {}}, {"second", {}}}, 1.0);
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd({.lr = 0.5});
  const auto trip = [&] {
    EXPECT_THROW(wired_loss(model, group, true).backward(), std::runtime_error);
  };
  trip();
  EXPECT_NE(error_of([&] { optimizer.step(); }).find("ended in an exception"), std::string::npos);
  trip();
  optimizer.zero_grad();
  wired_loss(model, group, false).backward();
  optimizer.step();
  EXPECT_EQ(values_of(model["first"]), Values{1 - 0.5 * 2});
}

TEST(Loops, StepAfterAMicroStepsLoopThatWasLeftIsRefused) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}});
  Parallel parallel(model, group, {.stage = Stage::single});
  SGD optimizer = parallel.sgd();
  for ([[maybe_unused]] const MicroStep& micro : parallel.micro_steps(4)) {
    (model["w"] * 2).backward();
    if (micro.index == 1) {
      break;
    }
  }
  const std::string error = error_of([&] { optimizer.step(); });
  EXPECT_NE(error.find("left after 1 of 4"), std::string::npos) << error;
}

// Recomputes its part of the graph in backward, as activation checkpointing does.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    context->save_for_backward({x, weight});
    return x * weight;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const torch::AutoGradMode with_grad(true);
    const torch::Tensor x = saved[0].detach().set_requires_grad(true);
    (x * saved[1]).backward(gradients[0]);
    return {x.grad(), torch::Tensor()};
  }
};

TEST(Loops, BackwardInsideABackwardBelongsToTheSameStep) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"outer", {}}, {"inner", {}}, {"last", {}}}, 2.0);
         Parallel parallel(model, group, ddp(0));
         Values result;
         for (int step = 0; step < 2; ++step) {
           const torch::Tensor x = model["outer"] * rank_factor(group);
           (Recomputed::apply(x, model["inner"]) * model["last"]).backward();
           for (const char* name : {"outer", "inner", "last"}) {
             append(result, values_of(model[name].grad()));
           }
           model->zero_grad();
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{6, 6, 6, 6, 6, 6}));
  }
}

}  // namespace
}  // namespace lockstep
