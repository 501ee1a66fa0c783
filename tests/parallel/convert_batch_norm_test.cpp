#include "lockstep/batch_norm.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace torch::nn;  // NOLINT: the modules under test

std::shared_ptr<Group> alone() { return std::make_shared<Group>(Group::alone()); }

struct BlockImpl : Module {
  BlockImpl() {
    layers = register_module("layers", Sequential(Conv1d(Conv1dOptions(2, 2, 1)), BatchNorm1d(2)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x); }
  Sequential layers{nullptr};
};
TORCH_MODULE(Block);

// A Sequential inside a class, with another one behind it.
struct FeaturesImpl : Module {
  FeaturesImpl() {
    layers = register_module("layers", Sequential(Block(), ReLU(), BatchNorm1d(2)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x); }
  Sequential layers{nullptr};
};
TORCH_MODULE(Features);

TEST(ConvertSyncBatchNorm, ReplacesAtAnyDepthAndKeepsWhatWasLearned) {
  torch::manual_seed(1);
  Features plain;
  plain->forward(torch::rand({4, 2, 3}));
  const auto names = plain->named_parameters().keys();
  const auto parameters = plain->parameters();
  const torch::Tensor x = torch::rand({3, 2, 3});
  plain->eval();
  const torch::Tensor expected = plain->forward(x);

  EXPECT_EQ(convert_sync_batch_norm(plain, alone()), 2);
  EXPECT_TRUE(torch::equal(plain->forward(x), expected));
  EXPECT_EQ(plain->named_parameters().keys(), names);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_TRUE(plain->parameters()[i].is_same(parameters[i])) << names[i];
  }
  EXPECT_NE(plain->layers[2]->as<SyncBatchNorm1d>(), nullptr);
  EXPECT_FALSE(plain->layers[2]->is_training());
  EXPECT_EQ(convert_sync_batch_norm(plain, alone()), 0);
}

TEST(ConvertSyncBatchNorm, TrainsWhatItConverted) {
  Features model;
  convert_sync_batch_norm(model, alone());
  const auto mean = model->layers[2]->as<SyncBatchNorm1d>()->running_mean.clone();
  model->forward(torch::rand({4, 2, 3})).sum().backward();
  EXPECT_FALSE(torch::equal(model->layers[2]->as<SyncBatchNorm1d>()->running_mean, mean));
  EXPECT_TRUE(model->layers[2]->as<SyncBatchNorm1d>()->weight.grad().defined());
}

// A batch norm as a member keeps its type.
struct FixedImpl : Module {
  FixedImpl() {
    layers = register_module("layers", Sequential(BatchNorm1d(2)));
    norm = register_module("norm", BatchNorm2d(3));
  }
  Sequential layers{nullptr};
  BatchNorm2d norm{nullptr};
};
TORCH_MODULE(Fixed);

TEST(ConvertSyncBatchNorm, NamesWhatItCannotReplaceAndChangesNothing) {
  Fixed model;
  const std::string text =
      test::error_of<UsageError>([&] { convert_sync_batch_norm(model, alone()); });
  EXPECT_NE(text.find("whose type is fixed: norm; declare"), std::string::npos) << text;
  EXPECT_NE(model->layers[0]->as<BatchNorm1d>(), nullptr);

  BatchNorm1d itself(2);
  EXPECT_NE(test::error_of<UsageError>([&] {
              convert_sync_batch_norm(itself, alone());
            }).find("the module itself"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
