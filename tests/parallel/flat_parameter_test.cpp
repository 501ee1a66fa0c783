#include "parallel/flat_parameter.h"

#include "comm/worlds.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

namespace lockstep::parallel {
namespace {

using test::values_of;

std::vector<NamedParameter> members(torch::Dtype held_as) {
  return {{"a", torch::arange(6, torch::kFloat32).reshape({2, 3}) / 7, held_as},
          {"empty", torch::zeros({0, 4}), held_as},
          {"scalar", torch::full({}, 9.0f), held_as},
          {"long", torch::ones({130}), held_as}};
}

TEST(FlatParameter, MembersKeepValuesAndShapesAsViewsOfOneStorage) {
  const auto device = make_cpu_device();
  auto parameters = members(torch::kFloat32);
  FlatParameter flat(*device, parameters, {.ranks = 3});
  flat.attach_members(*device);
  EXPECT_EQ(flat.layout().size(), 64 + 64 + 192 - 0 + 64);  // a, scalar, long; up to 3·64
  EXPECT_EQ(values_of(parameters[0].tensor), values_of(members(torch::kFloat32)[0].tensor));
  EXPECT_EQ(parameters[1].tensor.sizes(), torch::IntArrayRef({0, 4}));
  EXPECT_EQ(parameters[2].tensor.item<float>(), 9.0f);
  EXPECT_TRUE(parameters[0].tensor.is_alias_of(parameters[3].tensor));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(flat.values(i).data) % 64, 0u) << i;
    EXPECT_EQ(flat.master(i), nullptr);
  }
}

TEST(FlatParameter, SixteenBitMembersHaveAnFp32Master) {
  const auto device = make_cpu_device();
  auto parameters = members(torch::kBFloat16);
  const auto original = parameters[0].tensor.clone();
  FlatParameter flat(*device, parameters, {.ranks = 1});
  flat.attach_members(*device);
  EXPECT_EQ(parameters[0].tensor.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(values_of(parameters[0].tensor), values_of(original.to(torch::kBFloat16)));
  EXPECT_EQ(values_of(flat.kept_full_precision(0)), values_of(original));
  EXPECT_EQ(flat.master_bytes(), 4 * flat.layout().size());
  EXPECT_EQ(flat.parameter_bytes(), 2 * flat.layout().size());
}

TEST(FlatParameter, InitialValuesAreWhatABroadcastReplaces) {
  const auto device = make_cpu_device();
  auto parameters = members(torch::kBFloat16);
  FlatParameter flat(*device, parameters, {.ranks = 1});
  const Span initial = flat.initial_values();
  ASSERT_EQ(initial.dtype, Dtype::f32);
  ASSERT_EQ(initial.count, flat.layout().size());
  static_cast<float*>(initial.data)[flat.layout().member(2).begin] = -4.0f;
  flat.attach_members(*device);
  EXPECT_EQ(parameters[2].tensor.item<float>(), -4.0f);
}

TEST(FlatParameter, ReplacedStorageIsNamed) {
  const auto device = make_cpu_device();
  auto parameters = members(torch::kFloat32);
  FlatParameter flat(*device, parameters, {.ranks = 1});
  flat.attach_members(*device);
  EXPECT_NO_THROW(flat.check_attached());
  parameters[3].tensor.set_data(torch::ones({130}));
  try {
    flat.check_attached();
    FAIL() << "a replaced storage went unnoticed";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("'long'"), std::string::npos) << error.what();
  }
}

TEST(FlatParameter, FullPrecisionIsSetAndRoundedIntoWhatIsHeld) {
  const auto device = make_cpu_device();
  for (const torch::Dtype held_as : {torch::kFloat32, torch::kBFloat16}) {
    auto parameters = members(held_as);
    FlatParameter flat(*device, parameters, {.ranks = 1});
    flat.attach_members(*device);
    const auto version = parameters[0].tensor._version();
    const torch::Tensor values = torch::arange(6, torch::kFloat32).reshape({2, 3}) / 3;
    flat.set_full_precision(0, values, *device);
    flat.set_full_precision(1, torch::zeros({0, 4}), *device);
    EXPECT_EQ(values_of(flat.kept_full_precision(0)), values_of(values));
    EXPECT_EQ(values_of(parameters[0].tensor), values_of(values.to(held_as)));
    EXPECT_GT(parameters[0].tensor._version(), version) << "a graph kept over it is an error";
    EXPECT_EQ(values_of(parameters[2].tensor), std::vector<double>{9.0});
  }
}

// Shards of 192 elements: a and scalar lie in rank 0's, long in both.
TEST(FlatParameter, AShardedOneKeepsItsShardInFullPrecision) {
  const auto device = make_cpu_device();
  test::on_ranks(2, [&device](Group& group) {
    auto parameters = members(torch::kBFloat16);
    const FlatLayout layout = FlatParameter::layout_of(parameters, 2);
    ASSERT_EQ(layout.size(), 384);
    const SymmetricMemory memory = group.allocate_symmetric(384 * 2, "parameters");
    FlatParameter flat(
        *device, parameters,
        {.ranks = 2, .shard = group.rank(), .values = memory.span(0, 384, Dtype::bf16)});
    flat.attach_members(*device);
    const bool first = group.rank() == 0;
    EXPECT_EQ(flat.kept(), (first ? Range{0, 192} : Range{192, 384}));
    EXPECT_EQ(flat.kept(0).size(), first ? 6 : 0);
    EXPECT_EQ(flat.kept(3), (first ? Range{0, 64} : Range{64, 130}));
    EXPECT_EQ(flat.master_bytes(), 192 * 4);
    EXPECT_EQ(flat.kept_full_precision(3).numel(), first ? 64 : 66);
    EXPECT_EQ(parameters[0].tensor.const_data_ptr(), memory.span(0, 1, Dtype::bf16).data());
    EXPECT_EQ(values_of(flat.full_precision(0, group)),
              values_of(members(torch::kBFloat16)[0].tensor));
    const torch::Tensor values = torch::arange(130, torch::kFloat32) / 3;
    flat.set_full_precision(3, values, *device);
    EXPECT_EQ(values_of(flat.full_precision(3, group)), values_of(values));
    EXPECT_EQ(values_of(parameters[3].tensor), values_of(values.to(torch::kBFloat16)));
    EXPECT_EQ(values_of(flat.kept_full_precision(3)),
              values_of(first ? values.narrow(0, 0, 64) : values.narrow(0, 64, 66)));
  });
}

TEST(FlatParameter, DtypeThatCannotBeTrainedIsRefused) {
  EXPECT_THROW(dtype_of(torch::kInt32), UsageError);
  EXPECT_THROW(dtype_of(torch::kComplexFloat), UsageError);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16}) {
    EXPECT_EQ(dtype_of(torch_dtype(dtype)), dtype);
  }
}

}  // namespace
}  // namespace lockstep::parallel
