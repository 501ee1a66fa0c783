#include "lockstep/batch_norm.h"

#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

using test::append;
using test::RankResult;
using test::run;
using test::run_ranks;
using test::values_of;

using Values = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kFeatures = 5;

std::shared_ptr<Group> group_for_norms(Group& world) {
  return std::make_shared<Group>(*world.split(0, world.rank()));
}

// How one comparison runs: the samples of each rank, what follows them in the shape, the dtype.
struct Case {
  Sizes samples;
  Sizes more;
  torch::Dtype dtype = torch::kFloat32;
  torch::nn::BatchNormOptions options{kFeatures};

  torch::Tensor input() const {  // of all ranks
    std::int64_t all = 0;
    for (const std::int64_t mine : samples) {
      all += mine;
    }
    Sizes shape{all, kFeatures};
    shape.insert(shape.end(), more.begin(), more.end());
    return (torch::randn(shape, at::detail::createCPUGenerator(3)) * 2 + 5).to(dtype);
  }
  torch::Tensor target() const {
    return torch::randn(input().sizes(), at::detail::createCPUGenerator(4)).to(dtype);
  }
  std::int64_t begin_of(int rank) const {
    std::int64_t begin = 0;
    for (int r = 0; r < rank; ++r) {
      begin += samples[static_cast<std::size_t>(r)];
    }
    return begin;
  }
};

template <class Module>
void give_values(Module& module) {
  const torch::NoGradGuard no_grad;
  if (module->weight.defined()) {
    module->weight.copy_(torch::linspace(0.5, 1.5, kFeatures));
    module->bias.copy_(torch::linspace(-1, 1, kFeatures));
  }
}

// What two training batches and one in eval mode leave behind, of this part of the input.
struct Outcome {
  torch::Tensor output;
  torch::Tensor evaluated;
  torch::Tensor input_gradient;
  torch::Tensor weight_gradient;
  torch::Tensor bias_gradient;
  Values buffers;
};

template <class Module>
Outcome outcome_of(Module& module, const torch::Tensor& input, const torch::Tensor& target) {
  Outcome outcome;
  module->train();
  module(input * 2 - 1).detach();
  torch::Tensor x = input.clone().requires_grad_();
  outcome.output = module(x);
  (outcome.output * target).sum().backward();
  outcome.input_gradient = x.grad();
  if (module->weight.defined()) {
    outcome.weight_gradient = module->weight.grad();
    outcome.bias_gradient = module->bias.grad();
  }
  module->eval();
  outcome.evaluated = module(input);
  for (const auto& buffer : module->named_buffers()) {
    if (buffer.value().defined()) {
      append(outcome.buffers, values_of(buffer.value()));
    }
  }
  return outcome;
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  if (!a.defined() || a.numel() == 0) {
    return 0;
  }
  const torch::Tensor wide = b.to(torch::kFloat64);
  return ((a.to(torch::kFloat64) - wide).abs().max() / wide.abs().max().clamp_min(1))
      .item<double>();
}

// The largest differences from one BatchNorm on all samples in fp64 (in fp32 it rounds as we do,
// elsewhere), and the running statistics.
template <class Synchronised, class Plain>
Values compare(Group& world, const Case& how) {
  const torch::Tensor input = how.input();
  const torch::Tensor target = how.target();
  Plain plain(how.options);
  plain->to(torch::kFloat64);
  give_values(plain);
  const Outcome expected = outcome_of(plain, input.to(torch::kFloat64), target.to(torch::kFloat64));

  Synchronised synchronised(how.options, group_for_norms(world));
  synchronised->to(how.dtype);
  give_values(synchronised);
  const std::int64_t begin = how.begin_of(world.rank());
  const std::int64_t mine = how.samples[static_cast<std::size_t>(world.rank())];
  const Outcome got = outcome_of(synchronised, input.narrow(0, begin, mine).contiguous(),
                                 target.narrow(0, begin, mine));

  Values differences{
      largest_difference(got.output, expected.output.narrow(0, begin, mine)),
      largest_difference(got.evaluated, expected.evaluated.narrow(0, begin, mine)),
      largest_difference(got.input_gradient, expected.input_gradient.narrow(0, begin, mine))};
  if (how.options.affine()) {
    for (const auto& [partial, whole] : {std::pair(got.weight_gradient, expected.weight_gradient),
                                         std::pair(got.bias_gradient, expected.bias_gradient)}) {
      torch::Tensor sum = partial.to(torch::kFloat64).contiguous();
      world.all_reduce(Span(sum.data_ptr<double>(), sum.numel(), Dtype::f64)).wait();
      differences.push_back(largest_difference(sum, whole));
    }
  }
  for (std::size_t i = 0; i < expected.buffers.size(); ++i) {
    differences.push_back(std::abs(got.buffers.at(i) - expected.buffers[i]));
  }
  append(differences, got.buffers);
  return differences;
}

template <class Synchronised, class Plain>
void expect_equal(const Case& how, double bound = 1e-6) {
  const auto all = run(static_cast<int>(how.samples.size()),
                       [&](Group& world) { return compare<Synchronised, Plain>(world, how); });
  const bool tracks = how.options.track_running_stats();
  const std::size_t buffers = tracks ? 2 * kFeatures + 1 : 0;
  for (const Values& values : all) {
    ASSERT_GT(values.size(), 2 * buffers);
    for (std::size_t i = 0; i < values.size() - buffers; ++i) {
      EXPECT_LE(values[i], bound) << "difference " << i;
    }
    EXPECT_EQ(Values(values.end() - static_cast<std::ptrdiff_t>(buffers), values.end()),
              Values(all[0].end() - static_cast<std::ptrdiff_t>(buffers), all[0].end()));
  }
}

TEST(SyncBatchNorm, EqualsOneProcessWithUnequalBatches) {
  expect_equal<SyncBatchNorm1d, torch::nn::BatchNorm1d>({{6, 3}, {}});
  expect_equal<SyncBatchNorm1d, torch::nn::BatchNorm1d>({{4, 1, 2}, {7}});
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{1, 5}, {4, 3}});
  expect_equal<SyncBatchNorm3d, torch::nn::BatchNorm3d>({{2, 1, 1}, {2, 3, 2}});
}

TEST(SyncBatchNorm, EqualsOneProcessWithEmptyBatches) {
  expect_equal<SyncBatchNorm1d, torch::nn::BatchNorm1d>({{0, 5}, {}});
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{3, 0, 2}, {4, 4}});
}

TEST(SyncBatchNorm, EqualsOneProcessMoreExactlyInFp64) {
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{3, 0, 2}, {4, 4}, torch::kFloat64},
                                                        1e-13);
}

TEST(SyncBatchNorm, EqualsOneProcessAlone) {
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{6}, {3, 3}});
}

TEST(SyncBatchNorm, TakesEveryOption) {
  torch::nn::BatchNormOptions options(kFeatures);
  options.momentum(std::nullopt).eps(1e-3);
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{3, 2}, {4, 4}, torch::kFloat32, options});
  options.affine(false);
  expect_equal<SyncBatchNorm2d, torch::nn::BatchNorm2d>({{3, 2}, {4, 4}, torch::kFloat32, options});
}

TEST(SyncBatchNorm, WithoutRunningStatisticsIsPlainInEval) {
  for (const Values& values : run(2, [](Group& world) {
         const auto options = torch::nn::BatchNormOptions(3).track_running_stats(false);
         SyncBatchNorm1d synchronised(options, group_for_norms(world));
         torch::nn::BatchNorm1d plain(options);
         synchronised->eval();
         plain->eval();
         const torch::Tensor x = torch::rand({4, 3}) + world.rank();
         return Values{static_cast<double>(torch::equal(synchronised(x), plain(x)))};
       })) {
    EXPECT_EQ(values, Values{1});
  }
}

// A sum in bf16 stops growing at 256 ones, so the mean of 4,096 would be 1/16.
TEST(SyncBatchNorm, AddsBf16InFp32) {
  for (const Values& values : run(2, [](Group& world) {
         SyncBatchNorm1d norm(torch::nn::BatchNormOptions(1).momentum(1.0), group_for_norms(world));
         const torch::Tensor x = torch::ones({4096, 1}, torch::kBFloat16) * (world.rank() * 2 + 1);
         const torch::Tensor y = norm(x);
         return Values{norm->running_mean.item<double>(),
                       y.to(torch::kFloat32).mean().item<double>(),
                       static_cast<double>(y.scalar_type() == torch::kBFloat16)};
       })) {
    ASSERT_EQ(values.size(), 3u);
    EXPECT_EQ(values[0], 2.0);
    EXPECT_NEAR(std::abs(values[1]), 1.0, 1e-2);
    EXPECT_EQ(values[2], 1.0);
  }
}

TEST(SyncBatchNorm, CloneIsSynchronisedToo) {
  const auto results = run(2, [](Group& world) {
    SyncBatchNorm1d norm(torch::nn::BatchNormOptions(1).momentum(1.0), group_for_norms(world));
    const auto copy = std::dynamic_pointer_cast<SyncBatchNorm1dImpl>(norm->clone());
    copy->forward(torch::full({2, 1}, world.rank() * 2.0));
    return Values{copy->running_mean.item<double>(), norm->running_mean.item<double>()};
  });
  EXPECT_EQ(results[0], (Values{1, 0}));
  EXPECT_EQ(results[1], (Values{1, 0}));
}

TEST(SyncBatchNorm, WorksInASequential) {
  for (const Values& values : run(2, [](Group& world) {
         // No bias before the norm, which takes it out again: AdamW would amplify its gradient's
         // noise.
         torch::nn::Sequential net(
             torch::nn::Linear(3, 2),
             SyncBatchNorm1d(torch::nn::BatchNormOptions(2), group_for_norms(world)),
             torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)));
         net->forward(torch::rand({4, 3})).sum().backward();
         std::ostringstream text;
         text << *net;
         return Values{
             static_cast<double>(text.str().find("SyncBatchNorm1d(2") != std::string::npos)};
       })) {
    EXPECT_EQ(values, Values{1});
  }
}

// Five steps on 9 samples: 6 and 3 of them on two ranks, 5, 4 and none on three.
Values train_under_ddp(Group& world) {
  const std::vector<Sizes> layouts{{9}, {6, 3}, {5, 4, 0}};
  const Case how{.samples = layouts.at(static_cast<std::size_t>(world.size() - 1)), .more = {}};
  const std::int64_t mine = how.samples[static_cast<std::size_t>(world.rank())];
  const std::int64_t begin = how.begin_of(world.rank());
  const torch::Tensor x = how.input().narrow(0, begin, mine);
  const torch::Tensor target = how.target().narrow(0, begin, mine);
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(kFeatures, 8).bias(false)),
                            SyncBatchNorm1d(torch::nn::BatchNormOptions(8), group_for_norms(world)),
                            torch::nn::GELU(), torch::nn::Linear(8, kFeatures));
  // Small buckets, so that some are on their way while backward passes the norm.
  Parallel parallel(net, world, {.bucket_mb = 0});
  AdamW optimizer = parallel.adamw({.lr = 0.01});
  for (int step = 0; step < 5; ++step) {
    for ([[maybe_unused]] const auto& micro : parallel.weighted_micro_steps({mine})) {
      (net->forward(x) - target).pow(2).sum().backward();
    }
    optimizer.step();
  }
  Values weights;
  for (const torch::Tensor& parameter : net->parameters()) {
    append(weights, values_of(parameter));
  }
  return weights;
}

TEST(SyncBatchNorm, TrainsUnderDdpAsOnOneRank) {
  const Values one = run(1, train_under_ddp).at(0);
  for (const int ranks : {2, 3}) {
    const auto all = run(ranks, train_under_ddp);
    for (const Values& values : all) {
      ASSERT_EQ(values.size(), one.size());
      EXPECT_EQ(values, all[0]);
      for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_NEAR(values[i], one[i], 2e-5) << i;
      }
    }
  }
}

void expect_error(int ranks, const std::function<void(Group&)>& body, const std::string& text) {
  for (const RankResult& result : run_ranks(ranks, [&](Group& world) {
         body(world);
         return Values{};
       })) {
    EXPECT_NE(result.error.find(text), std::string::npos) << result.error;
  }
}

TEST(SyncBatchNorm, RefusesOneValueOverAllRanks) {
  expect_error(
      2,
      [](Group& world) {
        SyncBatchNorm1d norm(torch::nn::BatchNormOptions(3), group_for_norms(world));
        norm(torch::ones({world.rank(), 3}));
      },
      "expected at least 2 values per feature over all ranks in training, got 1");
}

TEST(SyncBatchNorm, RefusesWhatItCannotDo) {
  expect_error(
      1,
      [](Group& world) {
        SyncBatchNorm2d norm(torch::nn::BatchNormOptions(3), group_for_norms(world));
        norm(torch::ones({2, 4, 1, 1}));
      },
      "SyncBatchNorm2d: expected 4 dimensions, [samples, 3, …], got [2, 4, 1, 1]");
  expect_error(
      1, [](Group&) { SyncBatchNorm1d norm(torch::nn::BatchNormOptions(3), nullptr); },
      "SyncBatchNorm: expected a group, got none");
  expect_error(
      1,
      [](Group& world) {
        SyncBatchNorm1d norm(torch::nn::BatchNormOptions(1), group_for_norms(world));
        const torch::Tensor x = torch::rand({4, 1}).requires_grad_();
        torch::autograd::grad({norm(x).pow(3).sum()}, {x}, {}, true, /*create_graph=*/true);
      },
      "SyncBatchNorm has no second derivative");
}

}  // namespace
}  // namespace lockstep
