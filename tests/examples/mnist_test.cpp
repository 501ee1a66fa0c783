// Case P62: what is wrong in the well-known C++ MNIST example with MPI, held against its port.
#include "mnist/training.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace mnist {
namespace {

using lockstep::Group;
using lockstep::test::append;
using lockstep::test::RankResult;
using lockstep::test::run;
using lockstep::test::run_ranks;
using lockstep::test::values_of;

using Values = std::vector<double>;

// Few images, not divisible by the ranks, and none left for some rank in the last batch.
Settings small() {
  Settings settings;
  settings.epochs = 1;
  settings.batch = 12;
  settings.training = 49;
  settings.validation = 7;
  return settings;
}

Values weights_of(Net& net) {
  Values values;
  for (const auto& parameter : net->parameters()) {
    append(values, values_of(parameter));
  }
  return values;
}

// Every rank begins with weights of its own, which only a broadcast makes equal.
Net net_of(const Group& world, const Settings& settings) {
  torch::manual_seed(static_cast<std::uint64_t>(world.rank() + 1));
  return Net(settings.dropout);
}

TEST(Mnist, P62_parameters_are_broadcast_at_the_start) {
  const auto all = run(3, [](Group& world) {
    Net net = net_of(world, small());
    const lockstep::Parallel parallel(net, world);
    return weights_of(net);
  });
  torch::manual_seed(1);
  Net first(0.5);
  for (const Values& values : all) {
    EXPECT_EQ(values, weights_of(first));
  }
}

// The weights, losses and accuracy after training without dropout, which hangs on the layout.
Values train_without_dropout(Group& world) {
  Settings settings = small();
  settings.dropout = 0;
  settings.epochs = 2;
  Net net = net_of(world, settings);
  const Outcome outcome = train(net, world, settings);
  Values values{outcome.accuracy};
  append(values, Values(outcome.losses));
  append(values, weights_of(net));
  return values;
}

// The same by LibTorch alone, in one process: each step takes its images' mean gradient, the last
// of an epoch that of the one image left.
Values train_plainly() {
  const Settings settings = small();
  torch::manual_seed(1);
  Net net(/*dropout=*/0);
  torch::optim::AdamW optimizer(net->parameters(),
                                torch::optim::AdamWOptions(settings.learning_rate));
  const Group alone = Group::alone();
  lockstep::Sampler sampler(settings.training, alone, {.seed = settings.seed});
  auto loader = torch::data::make_data_loader(
      Digits(0, settings.training).map(torch::data::transforms::Stack<>()), sampler,
      static_cast<std::size_t>(settings.batch));
  Values losses;
  for (int epoch = 0; epoch < 2; ++epoch) {
    sampler.set_epoch(epoch);
    double sum = 0;
    for (const Batch& batch : *loader) {
      optimizer.zero_grad();
      const torch::Tensor loss = torch::cross_entropy_loss(net(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      sum += loss.item<double>() * static_cast<double>(batch.data.size(0));
    }
    losses.push_back(sum / static_cast<double>(settings.training));
  }
  Digits digits(settings.training, settings.validation);
  double right = 0;
  for (std::int64_t i = 0; i < settings.validation; ++i) {
    const Batch image = digits.get(static_cast<std::size_t>(i));
    right += net(image.data.unsqueeze(0)).argmax(1).eq(image.target).sum().item<double>();
  }
  Values values{right / static_cast<double>(settings.validation)};
  append(values, losses);
  append(values, weights_of(net));
  return values;
}

TEST(Mnist, P62_no_race_on_gradients_and_the_uneven_last_batch_counts_right) {
  const Values one = run(1, [](Group&) { return train_plainly(); }).at(0);
  for (const int ranks : {1, 2, 3, 4}) {
    const auto all = run(ranks, train_without_dropout);
    for (const Values& values : all) {
      EXPECT_EQ(values, all[0]);  // all ranks hold the same bits
    }
    ASSERT_EQ(all[0].size(), one.size());
    double largest = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      largest = std::max(largest, std::abs(all[0][i] - one[i]));
    }
    EXPECT_LT(largest, 2e-4) << ranks;
  }
}

TEST(Mnist, P62_ranks_drop_different_units) {
  const auto all = run(2, [](Group& world) {
    Net net = net_of(world, small());
    lockstep::Parallel parallel(net, world, {.seed = 1});
    auto optimizer = parallel.adamw();
    Values outputs;
    for (int step = 0; step < 2; ++step) {
      for ([[maybe_unused]] const auto& micro : parallel.weighted_micro_steps({1})) {
        append(outputs, values_of(net(torch::ones({1, 1, kSide, kSide}))));
      }
      optimizer.step();
    }
    return outputs;
  });
  EXPECT_NE(all[0], all[1]);
  // Nor do two steps of one rank drop the same ones.
  EXPECT_NE(Values(all[0].begin(), all[0].begin() + kClasses),
            Values(all[0].begin() + kClasses, all[0].end()));
}

TEST(Mnist, P62_each_epoch_has_an_order_of_its_own_and_every_image) {
  const auto all = run(2, [](Group& world) {
    Settings settings = small();
    settings.epochs = 2;
    Values digits;
    settings.on_batch = [&](const Batch& batch) { append(digits, values_of(batch.target)); };
    Net net = net_of(world, settings);
    train(net, world, settings);
    return digits;
  });
  std::map<double, int> seen;
  for (const Values& digits : all) {
    const auto half = static_cast<std::ptrdiff_t>(digits.size() / 2);
    EXPECT_NE(Values(digits.begin(), digits.begin() + half),
              Values(digits.begin() + half, digits.end()));
    for (const double digit : digits) {
      ++seen[digit];
    }
  }
  // 49 images in two epochs: digit 9 comes four times in each, the others five times.
  for (int digit = 0; digit < kClasses; ++digit) {
    EXPECT_EQ(seen[digit], digit == 9 ? 8 : 10) << digit;
  }
}

TEST(Mnist, P62_a_failure_stops_the_step_on_all_ranks) {
  const auto results = run_ranks(3, [](Group& world) {
    at::set_num_threads(1);
    Settings settings = small();
    int batches = 0;
    settings.on_batch = [&](const Batch&) {
      if (world.rank() == 1 && ++batches == 3) {
        throw std::runtime_error("a damaged image");
      }
    };
    Net net = net_of(world, settings);
    train(net, world, settings);
    return Values{};
  });
  EXPECT_EQ(results[1].error, "a damaged image");
  for (const int rank : {0, 2}) {
    const std::string& error = results[static_cast<std::size_t>(rank)].error;
    // At once, not after the deadline.
    EXPECT_NE(error.find("rank 1 left"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace mnist
