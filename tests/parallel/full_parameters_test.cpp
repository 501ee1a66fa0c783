// Parallel::with_full_parameters() in every stage.
#include "lockstep/parallel.h"
#include "parallel/modules.h"
#include "parallel/single_threaded_ranks.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep {
namespace {

using test::append;
using test::error_of;
using test::Perceptron;
using test::rank_factor;
using test::run;
using test::values_of;

using Values = std::vector<double>;

struct Sharing {
  Stage stage;
  bool share_parameters;
  bool is_bf16;
};

class FullParametersTest : public testing::TestWithParam<Sharing> {
 protected:
  static ParallelOptions options() {
    ParallelOptions options{.stage = GetParam().stage, .bucket_mb = 0.003};
    options.share_parameters = GetParam().share_parameters;
    if (GetParam().is_bf16) {
      options.precision =
          Precision::bf16_mixed([](const std::string& name) { return name.starts_with("norm"); });
    }
    return options;
  }
  static void step(Perceptron& model, Parallel& parallel, AdamW& optimizer) {
    const auto dtype = model->linears[0]->weight.scalar_type();
    const auto x = torch::full({4, 20}, rank_factor(parallel.group())).to(dtype);
    (model(x) - 1).pow(2).mean().backward();
    parallel.clip_grad_norm(0.5);
    optimizer.step();
  }
  static Values full(const Perceptron& model, const Parallel& parallel) {
    Values all;
    for (const auto& item : model->named_parameters()) {
      append(all, values_of(parallel.full_parameter(item.key())));
      expect_the_same_by_pieces(parallel, item.key());
    }
    return all;
  }
  static void expect_the_same_by_pieces(const Parallel& parallel, const std::string& name) {
    const Values whole = values_of(parallel.full_parameter(name));
    Values pieces;
    parallel.visit_full_parameter(
        name, [&](const torch::Tensor& piece) { append(pieces, values_of(piece)); });
    EXPECT_EQ(pieces, whole) << name;
    const LocalParameter local = parallel.local_parameter(name);
    EXPECT_EQ(values_of(local.values),
              Values(whole.begin() + local.begin, whole.begin() + local.end));
    const bool all = local.end - local.begin == static_cast<std::int64_t>(whole.size());
    EXPECT_TRUE(all || !local.everywhere);
  }
  static Values shown(const Perceptron& model) {
    Values all;
    for (const torch::Tensor& parameter : model->parameters()) {
      append(all, values_of(parameter));
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(
    All, FullParametersTest,
    testing::Values(Sharing{Stage::ddp, false, false}, Sharing{Stage::ddp, false, true},
                    Sharing{Stage::ddp, true, true}, Sharing{Stage::zero1, false, false},
                    Sharing{Stage::zero1, false, true}, Sharing{Stage::zero2, true, false},
                    Sharing{Stage::zero3, false, false}, Sharing{Stage::zero3, false, true}),
    [](const auto& one) {
      return std::string(name_of(one.param.stage)) + (one.param.share_parameters ? "_shared" : "") +
             (one.param.is_bf16 ? "_bf16" : "");
    });

TEST_P(FullParametersTest, ReadingShowsFullPrecisionAndChangesNoBit) {
  const auto train = [](bool reads) {
    return run(3, [reads](Group& group) {
      torch::manual_seed(3);
      Perceptron model(20, 2);
      Parallel parallel(model, group, options());
      AdamW optimizer = parallel.adamw({.lr = 0.01});
      for (int i = 0; i < 3; ++i) {
        step(model, parallel, optimizer);
        if (reads) {
          const Values expected = full(model, parallel);
          const Values held = shown(model);
          parallel.with_full_parameters([&] {
            EXPECT_EQ(shown(model), expected);
            EXPECT_EQ(model->linears[0]->weight.scalar_type(), torch::kFloat32);
            std::stringstream file;
            torch::save(model, file);
            EXPECT_GT(file.str().size(), 4u * 800);
          });
          EXPECT_EQ(shown(model), held);
        }
      }
      return full(model, parallel);
    });
  };
  EXPECT_EQ(train(true), train(false));
}

// As set_parameter() would on every rank.
TEST_P(FullParametersTest, WritingSetsMastersAndWhatForwardReads) {
  const auto halved = [](bool at_once) {
    return run(3, [at_once](Group& group) {
      torch::manual_seed(3);
      Perceptron model(20, 2);
      Parallel parallel(model, group, options());
      AdamW optimizer = parallel.adamw({.lr = 0.01});
      step(model, parallel, optimizer);
      if (at_once) {
        parallel.with_full_parameters(
            [&] {
              const torch::NoGradGuard no_grad;
              for (torch::Tensor& parameter : model->parameters()) {
                parameter.mul_(0.501f);
              }
            },
            FullParameters::write);
      } else {
        for (const auto& item : model->named_parameters()) {
          parallel.set_parameter(item.key(), parallel.full_parameter(item.key()) * 0.501f);
        }
      }
      Values result = full(model, parallel);
      append(result, shown(model));
      step(model, parallel, optimizer);
      append(result, full(model, parallel));
      return result;
    });
  };
  const auto ranks = halved(true);
  for (const Values& values : ranks) {
    EXPECT_EQ(values, ranks[0]);
  }
  EXPECT_EQ(ranks, halved(false));
}

// Where a write is a fault (shared fp32) the line names the parameter as well.
TEST(FullParameters, RefuseWritesForReadingAndNesting) {
  for (const Stage stage : {Stage::ddp, Stage::zero1}) {
    run(2, [stage](Group& group) {
      Perceptron model(20, 2);
      Parallel parallel(model, group, {.stage = stage, .precision = Precision::bf16_mixed()});
      AdamW optimizer = parallel.adamw();
      const std::string written = error_of([&] {
        parallel.with_full_parameters([&] {
          const torch::NoGradGuard no_grad;
          model->linears[1]->bias.zero_();
        });
      });
      EXPECT_NE(written.find("'linear1.bias' was written to"), std::string::npos) << written;
      const std::string nested = error_of(
          [&] { parallel.with_full_parameters([&] { parallel.with_full_parameters([] {}); }); });
      EXPECT_NE(nested.find("inside with_full_parameters()"), std::string::npos) << nested;
      return Values{};
    });
  }
}

TEST_P(FullParametersTest, AnExceptionOnOneRankLeavesAllAsTheyWere) {
  run(2, [](Group& group) {
    torch::manual_seed(3);
    Perceptron model(20, 2);
    Parallel parallel(model, group, options());
    AdamW optimizer = parallel.adamw({.lr = 0.01});
    const Values before = full(model, parallel);
    const std::string error = error_of([&] {
      parallel.with_full_parameters(
          [&] {
            const torch::NoGradGuard no_grad;
            model->linears[0]->weight.zero_();
            if (group.rank() == 1) {
              throw UsageError("the disk is full");
            }
          },
          FullParameters::write);
    });
    EXPECT_NE(error.find("rank 1: the disk is full"), std::string::npos) << error;
    EXPECT_EQ(full(model, parallel), before);
    step(model, parallel, optimizer);  // and goes on
    const auto x = torch::ones({4, 20}).to(model->linears[0]->weight.scalar_type());
    model(x).sum().backward();
    EXPECT_NE(error_of([&] { parallel.with_full_parameters([] {}); }).find("middle of a step"),
              std::string::npos);
    return Values{};
  });
}

// More than is gathered at a time.
TEST(FullParameters, OfALargeParameterComeInOrder) {
  run(2, [](Group& group) {
    test::Parameters model(test::Shapes{{"w", {600'001}}}, 0.0);
    Parallel parallel(model, group, {.stage = Stage::zero2, .precision = Precision::bf16_mixed()});
    AdamW optimizer = parallel.adamw();
    const torch::Tensor values = torch::sin(torch::arange(600'001)).to(torch::kFloat32);
    parallel.set_parameter("w", values);
    EXPECT_TRUE(torch::equal(parallel.full_parameter("w"), values));
    std::vector<torch::Tensor> pieces;
    parallel.visit_full_parameter(
        "w", [&](const torch::Tensor& piece) { pieces.push_back(piece.clone()); });
    EXPECT_GT(pieces.size(), 2u);
    EXPECT_TRUE(torch::equal(torch::cat(pieces), values));
    return Values{};
  });
}

}  // namespace
}  // namespace lockstep
