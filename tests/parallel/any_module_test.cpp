// Parameters of every kind and state under Parallel: unused, mixed, tied, frozen, unfrozen,
// replaced, empty.
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

using test::append;
using test::ddp;
using test::error_of;
using test::Parameters;
using test::rank_factor;
using test::run;
using test::Shapes;
using test::values_of;

using Values = std::vector<double>;

TEST(AnyModule, G4_unused_output_leaves_its_parameters_without_a_gradient) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"a", {}}, {"b", {}}}, 1.0);
         Parallel parallel(model, group, ddp());
         SGD optimizer = parallel.sgd({.lr = 0.125});
         Values result;
         for (int step = 0; step < 6; ++step) {
           const auto outputs = std::make_pair(model["a"] * rank_factor(group), model["b"] * 2);
           outputs.first.backward();
           append(result, values_of(model["a"].grad()));
           result.push_back(model["b"].grad().defined());
           optimizer.step();
         }
         append(result, values_of(model["a"]));
         append(result, values_of(model["b"]));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 0, 1.5, 0, 1.5, 0, 1.5, 0, 1.5, 0, 1.5, 0, -0.125, 1}));
  }
}

TEST(AnyModule, G6_frozen_double_registered_last_beside_trained_floats) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         model->register_parameter("c", torch::full({3}, 0.1 + group.rank(), torch::kFloat64),
                                   /*requires_grad=*/false);
         Parallel parallel(model, group, ddp());
         (model["w"] * rank_factor(group)).backward();
         Values result = values_of(model["w"].grad());
         append(result, values_of(parallel.full_parameter("c")));
         result.push_back(static_cast<double>(parallel.full_parameter("c").element_size()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 0.1, 0.1, 0.1, 8}));
  }
}

TEST(AnyModule, G6_floats_and_doubles_train_side_by_side) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}});
         model->register_parameter("d", torch::full({2}, 1.0, torch::kFloat64));
         Parallel parallel(model, group, ddp());
         (model["w"] * rank_factor(group) + (model["d"] * rank_factor(group)).sum()).backward();
         Values result = values_of(model["w"].grad());
         append(result, values_of(model["d"].grad()));
         result.push_back(static_cast<double>(parallel.buckets()));
         for (const char* name : {"w", "d"}) {
           result.push_back(static_cast<double>(model[name].element_size()));
           result.push_back(static_cast<double>(model[name].grad().element_size()));
         }
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 1.5, 1.5, 1, 4, 4, 8, 8}));
  }
}

// One step of the base case and its gradient; the way a program would loop.
enum class LoopKind { plain, micro_steps };

Values gradient_of(Parallel& parallel, Group& group, torch::Tensor& w, LoopKind loop) {
  if (loop == LoopKind::plain) {
    (w * rank_factor(group)).backward();
  } else {
    for (const MicroStep& micro : parallel.micro_steps(2)) {
      (w * rank_factor(group) * (1.0 + 0.0 * static_cast<double>(micro.leaf))).backward();
    }
  }
  return values_of(w.grad());
}

void expect_unfrozen_is_synchronised(LoopKind loop, const Precision& precision) {
  const double lr = 0x1p-11;  // small enough that updates of 1 get lost in bf16 without a master
  for (const Values& values : run(2, [&](Group& group) {
         Parameters model(Shapes{{"w", {}}, {"late", {3}}, {"later", {}}}, group.rank() + 1.0);
         model["late"].set_requires_grad(false);
         model["later"].set_requires_grad(false);
         Parallel parallel(model, group, {.stage = Stage::ddp, .precision = precision});
         SGD optimizer = parallel.sgd({.lr = lr});
         Values result = gradient_of(parallel, group, model["w"], loop);
         optimizer.step();
         model["later"].set_requires_grad(true);
         for (int step = 0; step < 2; ++step) {
           append(result, gradient_of(parallel, group, model["later"], loop));
           optimizer.step();
         }
         append(result, values_of(parallel.full_parameter("w")));
         append(result, values_of(parallel.full_parameter("late")));
         append(result, values_of(parallel.full_parameter("later")));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 1.5, 1.5, 1 - 1.5 * lr, 1, 1, 1, 1 - 3 * lr}));
  }
}

TEST(AnyModule, G7_parameter_unfrozen_after_wrapping_is_synchronised) {
  expect_unfrozen_is_synchronised(LoopKind::plain, Precision::f32());
  expect_unfrozen_is_synchronised(LoopKind::micro_steps, Precision::f32());
}

TEST(AnyModule, G7_parameter_unfrozen_after_wrapping_gets_its_master) {
  expect_unfrozen_is_synchronised(LoopKind::plain, Precision::bf16_mixed());
  expect_unfrozen_is_synchronised(LoopKind::micro_steps, Precision::bf16_mixed());
}

// What a rank did to a frozen parameter meanwhile is its own affair: rank 0's values count.
TEST(AnyModule, G7_parameter_unfrozen_after_wrapping_takes_rank_0s_values) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}, {"late", {3}}});
         model["late"].set_requires_grad(false);
         Parallel parallel(model, group, ddp());
         model["late"].fill_(rank_factor(group));
         model["late"].set_requires_grad(true);
         (model["late"].sum() * rank_factor(group)).backward();
         Values result = values_of(model["late"]);
         append(result, values_of(model["late"].grad()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1, 1, 1, 1.5, 1.5, 1.5}));
  }
}

TEST(AnyModule, G7_parameter_unfrozen_on_one_rank_only_is_an_error_on_all) {
  for (const test::RankResult& result : test::run_ranks(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}, {"late", {}}});
         model["late"].set_requires_grad(false);
         Parallel parallel(model, group, ddp());
         model["late"].set_requires_grad(group.rank() == 1);
         for (const MicroStep& micro : parallel.micro_steps(1)) {
           (model["w"] * static_cast<double>(micro.leaf)).backward();
         }
         return Values{};
       })) {
    EXPECT_NE(result.error.find("unfrozen parameters"), std::string::npos) << result.error;
  }
}

TEST(AnyModule, G7_unfreezing_in_the_middle_of_a_step_is_an_error_naming_it) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {}}, {"late", {}}});
  model["late"].set_requires_grad(false);
  Parallel parallel(model, group, {.stage = Stage::single});
  const std::string error = error_of([&] {
    for (const MicroStep& micro : parallel.micro_steps(2)) {
      model["late"].set_requires_grad(micro.index == 1);
      (model["w"] + model["late"]).backward();
    }
  });
  EXPECT_NE(error.find("'late' was unfrozen in the middle"), std::string::npos) << error;
}

TEST(AnyModule, G7_frozen_parameter_that_two_parallels_share_is_refused_once_unfrozen) {
  Group group = Group::alone();
  Parameters first(Shapes{{"a", {}}});
  Parameters second(Shapes{{"b", {}}});
  const auto shared = torch::ones({}, torch::kFloat32);
  for (Parameters* model : {&first, &second}) {
    (*model)->register_parameter("shared", shared, /*requires_grad=*/false);
  }
  Parallel one(first, group, {.stage = Stage::single});
  Parallel two(second, group, {.stage = Stage::single});
  (second["b"] * second["shared"]).backward();
  EXPECT_EQ(values_of(second["b"].grad()), Values{1});
  shared.set_requires_grad(true);
  EXPECT_NE(error_of([&] { two.micro_steps(1).begin(); }).find("another Parallel"),
            std::string::npos);
}

// A module whose list shows what the test does to it.
struct Changing : torch::nn::Module {
  Changing() {
    register_parameter("w", torch::zeros({2}));
    register_parameter("v", torch::zeros({2}));
  }
  void replace() { parameters_["w"] = torch::ones({2}, torch::requires_grad()); }
  void add() { register_parameter("extra", torch::zeros({2})); }
};

void expect_named(const std::string& name, const std::function<void(Changing&)>& change) {
  Group group = Group::alone();
  const auto model = std::make_shared<Changing>();
  Parallel parallel(model, group, {.stage = Stage::single});
  change(*model);
  const auto in_micro_steps = error_of([&] { parallel.micro_steps(1).begin(); });
  EXPECT_NE(in_micro_steps.find("'" + name + "'"), std::string::npos) << in_micro_steps;
  const auto in_backward = error_of([&] { model->named_parameters()["v"].sum().backward(); });
  EXPECT_NE(in_backward.find("'" + name + "'"), std::string::npos) << in_backward;
  const auto without_backward = error_of([&] { parallel.grad_norm(); });
  EXPECT_NE(without_backward.find("'" + name + "'"), std::string::npos) << without_backward;
}

TEST(AnyModule, G7_replaced_parameter_is_an_error_naming_it) {
  expect_named("w", [](Changing& model) { model.replace(); });
  expect_named("extra", [](Changing& model) { model.add(); });
  expect_named("w", [](Changing& model) { model.parameters()[0].set_data(torch::ones({2})); });
}

TEST(AnyModule, G11_module_without_buffers_works) {
  for (const Values& values : run(2, [](Group& group) {
         torch::nn::Linear model(1, 1);
         Parallel parallel(model, group, ddp());
         const auto x = torch::full({1, 1}, rank_factor(group));
         model(x).sum().backward();
         Values result = values_of(model->weight.grad());
         result.push_back(static_cast<double>(model->buffers().size()));
         return result;
       })) {
    EXPECT_EQ(values, (Values{1.5, 0}));
  }
}

TEST(AnyModule, A25_step_counter_under_bf16_counts_on) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters model(Shapes{{"w", {}}}, 1.0);
         auto counter = model->register_buffer("counter", torch::zeros({}));
         auto whole = model->register_buffer("whole", torch::zeros({}, torch::kInt64));
         Parallel parallel(model, group,
                           {.stage = Stage::ddp, .precision = Precision::bf16_mixed()});
         SGD optimizer = parallel.sgd({.lr = 0.001});
         for (int step = 0; step < 300; ++step) {
           counter += 1;
           whole += 1;
           (model["w"] * 2).backward();
           optimizer.step();
         }
         return Values{counter.item<double>(), whole.item<double>(),
                       static_cast<double>(counter.scalar_type() == torch::kFloat32)};
       })) {
    EXPECT_EQ(values, (Values{300, 300, 1}));
  }
}

TEST(AnyModule, A27_half_parameters_that_would_need_a_loss_scale_are_refused_by_name) {
  Group group = Group::alone();
  Parameters model(Shapes{{"w", {2}}});
  model->to(torch::kFloat16);
  Parallel parallel(model, group, {.stage = Stage::single});
  const auto sgd_of_torch = [&] {
    parallel.optimizer<torch::optim::SGD>(torch::optim::SGDOptions(1e-3));
  };
  for (const std::string& error : {error_of([&] { parallel.adamw(); }), error_of(sgd_of_torch)}) {
    EXPECT_NE(error.find("'w' is half"), std::string::npos) << error;
    EXPECT_NE(error.find("loss scaling"), std::string::npos) << error;
  }
}

class EveryStage : public testing::TestWithParam<Stage> {};
INSTANTIATE_TEST_SUITE_P(AnyModule, EveryStage,
                         testing::Values(Stage::ddp, Stage::zero1, Stage::zero2, Stage::zero3),
                         [](const auto& stage) { return std::string(name_of(stage.param)); });

bool rests_in_shards(Stage stage) { return stage == Stage::zero2 || stage == Stage::zero3; }

TEST_P(EveryStage, G20_gradient_memory_is_4_mb_under_no_sync_and_a_shard_after) {
  const Stage stage = GetParam();
  for (const Values& values : run(4, [stage](Group& group) {
         Parameters model(Shapes{{"w", {1'000'000}}});
         Parallel parallel(model, group, {.stage = stage});
         Values result;
         {
           const auto accumulating = parallel.no_sync();
           (model["w"] * rank_factor(group)).sum().backward();
           result.push_back(static_cast<double>(parallel.held().gradients));
         }
         (model["w"] * rank_factor(group)).sum().backward();
         result.push_back(static_cast<double>(parallel.held().gradients));
         append(result, values_of(parallel.local_grad("w").values));
         return result;
       })) {
    ASSERT_GT(values.size(), 2u);
    const double full = 4e6 + 4 * 64 * 4;  // padded to shards of 64 elements
    EXPECT_GE(values[0], 4e6);
    EXPECT_LE(values[0], full);
    EXPECT_GE(values[1], rests_in_shards(stage) ? 0.99e6 : 4e6);
    EXPECT_LE(values[1], rests_in_shards(stage) ? full / 4 : full);
    EXPECT_EQ(Values(values.begin() + 2, values.end()), Values(values.size() - 2, 5.0));
  }
}

// Large enough for elements on either of two ranks.
constexpr std::int64_t kTied = 200;

struct TiedImpl : torch::nn::Module {
  explicit TiedImpl(double value) {
    embedding = register_parameter("embedding", torch::full({kTied}, value));
    head = register_parameter("head", embedding);
  }
  torch::Tensor embedding;
  torch::Tensor head;
};
TORCH_MODULE(Tied);

// Whether every element that this rank keeps has this gradient, and there are some.
bool has_tied_gradient(Tied& model, Parallel& parallel, Group& group, double expected) {
  ((model->embedding * 2 + model->head * 3).sum() * rank_factor(group)).backward();
  const Values kept = values_of(parallel.local_grad("embedding").values);
  return !kept.empty() && kept == Values(kept.size(), expected);
}

TEST_P(EveryStage, G21_tied_parameter_stays_one_tensor_over_steps_and_files) {
  const ParallelOptions options{.stage = GetParam()};
  for (const Values& values : run(2, [options](Group& group) {
         Tied model(1.0);
         std::stringstream file;
         Values result;
         {
           Parallel parallel(model, group, options);
           AdamW optimizer = parallel.adamw({.lr = 0.5, .weight_decay = 0});
           result.push_back(has_tied_gradient(model, parallel, group, 7.5));
           optimizer.step();
           result.push_back(model->embedding.is_same(model->head));
           result.push_back(model->embedding.data_ptr() == model->head.data_ptr());
           torch::save(model, file);
         }
         Tied loaded(7.0);
         torch::load(loaded, file);
         result.push_back(loaded->embedding.is_same(loaded->head));
         result.push_back(torch::allclose(loaded->head, torch::full({kTied}, 0.5)));
         Parallel parallel(loaded, group, options);
         result.push_back(has_tied_gradient(loaded, parallel, group, 7.5));
         return result;
       })) {
    EXPECT_EQ(values, Values(6, 1.0));
  }
}

TEST_P(EveryStage, G22_frozen_parameters_cost_no_gradient_and_no_optimizer_memory) {
  const Stage stage = GetParam();
  for (const Values& values : run(4, [stage](Group& group) {
         Parameters model(Shapes{{"frozen", {1'000'000}}, {"trained", {1000}}}, 1.0);
         model["frozen"].set_requires_grad(false);
         Parallel parallel(model, group, {.stage = stage});
         const AdamW optimizer = parallel.adamw();
         const HeldBytes held = parallel.held();
         return Values{static_cast<double>(held.parameters), static_cast<double>(held.gradients),
                       static_cast<double>(held.optimizer)};
       })) {
    // 1000 elements are padded to 4 ranks × 64.
    const double parameters = 4e6 + (stage == Stage::zero3 ? 1024 : 4096);
    const double gradients = rests_in_shards(stage) ? 1024 : 4096;
    const double state = 2 * (stage == Stage::ddp ? 4096 : 1024);
    EXPECT_EQ(values, (Values{parameters, gradients, state}));
  }
}

TEST(AnyModule, ScalarAndEmptyParametersTrainInBucketsOfAnySize) {
  for (const double bucket_mb : {0.0, 25.0}) {
    for (const Values& values : run(2, [bucket_mb](Group& group) {
           Parameters model(Shapes{{"none", {0}}, {"scalar", {}}, {"flat", {3, 0}}, {"w", {2}}},
                            1.0);
           Parallel parallel(model, group, {.stage = Stage::ddp, .bucket_mb = bucket_mb});
           SGD optimizer = parallel.sgd({.lr = 0.5, .momentum = 0.5});
           Values result;
           for (int step = 0; step < 2; ++step) {
             ((model["none"].sum() + model["scalar"] + model["flat"].sum() + model["w"].sum()) *
              rank_factor(group))
                 .backward();
             append(result, values_of(model["scalar"].grad()));
             result.push_back(static_cast<double>(model["none"].grad().numel()));
             result.push_back(parallel.clip_grad_norm(100));
             optimizer.step();
           }
           append(result, values_of(model["scalar"]));
           return result;
         })) {
      const double norm = std::sqrt(3 * 1.5 * 1.5);
      EXPECT_EQ(values, (Values{1.5, 0, norm, 1.5, 0, norm, 1 - 0.75 - 1.125}));
    }
  }
}

// Frozen between steps and unfrozen again, an optimizer's state waits, as torch::optim's does.
TEST(AnyModule, FreezingBetweenStepsFollowsTorchOptim) {
  for (const Values& values : run(2, [](Group& group) {
         Parameters ours(Shapes{{"a", {}}, {"b", {}}}, 1.0);
         Parameters theirs(Shapes{{"a", {}}, {"b", {}}}, 1.0);
         ours["b"].set_requires_grad(false);
         theirs["b"].set_requires_grad(false);
         Parallel parallel(ours, group, ddp());
         AdamW optimizer = parallel.adamw({.lr = 0.1, .weight_decay = 0.2});
         torch::optim::AdamW reference(theirs->parameters(),
                                       torch::optim::AdamWOptions(0.1).weight_decay(0.2));
         Values differences;
         for (int step = 0; step < 8; ++step) {
           const bool trains_a = step < 3 || step > 4;
           const bool trains_b = step > 1 && step != 6;
           for (Parameters* model : {&ours, &theirs}) {
             (*model)["a"].set_requires_grad(trains_a);
             (*model)["b"].set_requires_grad(trains_b);
           }
           const auto loss = [step](Parameters& model, double factor) {
             return (model["a"] * (step + 1) + model["b"].pow(2) * 3) * factor;
           };
           loss(ours, rank_factor(group)).backward();
           optimizer.step();
           loss(theirs, 1.5).backward();
           reference.step();
           reference.zero_grad();
           differences.push_back((ours["a"] - theirs["a"]).abs().item<double>());
           differences.push_back((ours["b"] - theirs["b"]).abs().item<double>());
         }
         return differences;
       })) {
    ASSERT_EQ(values.size(), 16u);
    for (const double difference : values) {
      EXPECT_LE(difference, 1e-6);
    }
  }
}

}  // namespace
}  // namespace lockstep
