#include "parallel/flat_model.h"

#include "parallel/modules.h"
#include "support/ranks.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using test::append;
using test::Parameters;
using test::Shapes;
using test::values_of;

TEST(FlatModel, AllRanksStartFromTheValuesOfRankZero) {
  for (const auto& result : test::run_ranks(3, [](Group& group) {
         Parameters model(Shapes{{"a", {3}}, {"b", {2}}}, group.rank() + 1.0);
         model->register_buffer("count", torch::full({2}, group.rank() + 5, torch::kInt64));
         model["b"].set_requires_grad(false);
         const auto device = make_cpu_device();
         const FlatModel flat(model.ptr(), group, {}, *device);
         std::vector<double> values = values_of(model["a"]);
         append(values, values_of(model["b"]));
         append(values, values_of(model->named_buffers()["count"]));
         return values;
       })) {
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.values, (std::vector<double>{1, 1, 1, 1, 1, 5, 5}));
  }
}

class FlatModelAlone : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = make_cpu_device();
  Group group_ = Group::alone();
};

TEST_F(FlatModelAlone, BucketsFillInReverseRegistrationOrder) {
  Parameters model(Shapes{{"a", {300}}, {"b", {300}}, {"c", {300}}});
  const FlatModel flat(model.ptr(), group_, {.bucket_mb = 0.0025}, *device_);
  ASSERT_EQ(flat.buckets().size(), 2u);
  EXPECT_EQ(flat.buckets()[0].name, "bucket 0: c");
  EXPECT_EQ(flat.buckets()[1].name, "bucket 1: b +1");
  EXPECT_EQ(flat.parts()[1]->member(1).name, "a");
}

TEST_F(FlatModelAlone, BucketMbZeroGivesEveryParameterItsOwn) {
  Parameters model(Shapes{{"a", {3}}, {"b", {}}, {"c", {3}}});
  const FlatModel flat(model.ptr(), group_, {.bucket_mb = 0}, *device_);
  EXPECT_EQ(flat.buckets().size(), 3u);
}

TEST_F(FlatModelAlone, BucketHoldsOneFlatParameterPerDtype) {
  Parameters model(Shapes{{"matrix", {4, 4}}, {"norm", {4}}, {"other", {4}}}, 0.1);
  const Precision precision =
      Precision::bf16_mixed([](const std::string& name) { return name == "norm"; });
  const FlatModel flat(model.ptr(), group_, {.precision = precision}, *device_);
  ASSERT_EQ(flat.buckets().size(), 1u);
  EXPECT_EQ(flat.buckets()[0].parts.size(), 2u);
  EXPECT_EQ(flat.parameter_bytes(), 128 * 2 + 64 * 4);
  EXPECT_EQ(flat.master_bytes(), 128 * 4);
  EXPECT_EQ(flat.full_precision("matrix", group_)[0][0].item<float>(), 0.1f);
  EXPECT_NE(model["matrix"][0][0].item<float>(), 0.1f);
}

TEST_F(FlatModelAlone, FindsWhatIsTrainedByTensorAndByName) {
  Parameters model(Shapes{{"a", {3}}, {"frozen", {3}}, {"b", {3}}});
  model["frozen"].set_requires_grad(false);
  const FlatModel flat(model.ptr(), group_, {.bucket_mb = 0}, *device_);
  for (const char* const name : {"a", "b"}) {
    const auto number = flat.number_of(model[name]);
    ASSERT_TRUE(number.has_value());
    EXPECT_EQ(flat.number_of(std::string(name)), number);
    EXPECT_TRUE(flat.tensors()[*number].is_same(model[name]));
  }
  EXPECT_EQ(flat.number_of(model["frozen"]), std::nullopt);
  EXPECT_EQ(flat.number_of(torch::ones({3})), std::nullopt);
  EXPECT_EQ(flat.number_of(std::string("absent")), std::nullopt);
}

TEST_F(FlatModelAlone, ParametersAreSetInFullPrecisionFrozenOnesToo) {
  Parameters model(Shapes{{"w", {2}}, {"frozen", {2}}}, 0.5);
  model["frozen"].set_requires_grad(false);
  FlatModel flat(model.ptr(), group_, {.precision = Precision::bf16_mixed()}, *device_);
  const torch::Tensor values = torch::tensor({1.0f / 3, 2.0f});
  for (const char* const name : {"w", "frozen"}) {
    flat.set_full_precision(name, values, *device_);
    EXPECT_EQ(values_of(model[name]), values_of(values.to(torch::kBFloat16)));
  }
  EXPECT_EQ(values_of(flat.full_precision("w", group_)), values_of(values));
  EXPECT_THROW(flat.set_full_precision("w", torch::ones({3}), *device_), UsageError);
  EXPECT_THROW(flat.set_full_precision("b", values, *device_), UsageError);
  EXPECT_EQ(&flat.module(), model.ptr().get());
}

TEST_F(FlatModelAlone, AFrozenDoubleStaysOne) {
  Parameters model(Shapes{{"w", {2}}, {"frozen", {2}}}, 0.1);
  model["frozen"].set_requires_grad(false);
  model["frozen"].set_data(torch::full({2}, 0.1, torch::kFloat64));
  const FlatModel flat(model.ptr(), group_, {}, *device_);
  EXPECT_EQ(values_of(flat.full_precision("frozen", group_)), (std::vector<double>{0.1, 0.1}));
}

TEST_F(FlatModelAlone, UnknownNameIsRefused) {
  Parameters model(Shapes{{"a", {3}}});
  const FlatModel flat(model.ptr(), group_, {}, *device_);
  EXPECT_THROW(flat.full_precision("b", group_), UsageError);
}

}  // namespace
}  // namespace lockstep::parallel
