#include "plan/flat_buckets.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::plan {
namespace {

using Model = std::vector<Parameter>;

TEST(FlatBuckets, hold_one_flat_parameter_per_dtype_in_reverse_order) {
  const Model model{{100, Dtype::bf16}, {10, Dtype::f32}, {65, Dtype::bf16}};
  const FlatBuckets planned = flat_buckets(model, {.ranks = 2});
  ASSERT_EQ(planned.size(), 1u);
  ASSERT_EQ(planned[0].size(), 2u);
  const Flat& f32 = planned[0][0];
  EXPECT_EQ(f32.dtype, Dtype::f32);
  EXPECT_EQ(f32.layout.size(), 128);  // 10 elements, two shards of one granule
  const Flat& bf16 = planned[0][1];
  EXPECT_EQ(bf16.dtype, Dtype::bf16);
  EXPECT_EQ(bf16.layout.member(0).size(), 65);  // registered last, filled first
  EXPECT_EQ(bf16.layout.member(1), (Range{128, 228}));
  EXPECT_EQ(bf16.layout.size(), 256);
}

TEST(FlatBuckets, leave_frozen_parameters_out) {
  const Model model{{100, Dtype::f32, false}, {10}, {7, Dtype::i64, false}};
  const FlatBuckets planned = flat_buckets(model, {});
  ASSERT_EQ(planned.size(), 1u);
  EXPECT_EQ(planned[0][0].layout.members(), 1u);
  EXPECT_TRUE(flat_buckets(Model{{5, Dtype::f32, false}}, {}).empty());
}

TEST(FlatBuckets, gradients_widen_only_when_sixteen_bit_leaves_add_up) {
  const Model model{{1, Dtype::bf16}, {1, Dtype::f32}, {1, Dtype::f64}, {1, Dtype::f16}};
  for (const std::int64_t k : {1, 2, 5}) {
    const FlatBuckets planned = flat_buckets(model, {.micro_batches = k});
    for (const Flat& flat : planned[0]) {
      const bool widens = size_of(flat.dtype) == 2 && k > 1;
      EXPECT_EQ(flat.gradient_dtype, widens ? Dtype::f32 : flat.dtype);
    }
  }
}

std::string refusal(const Model& model, const Training& training) {
  try {
    flat_buckets(model, training);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(FlatBuckets, are_units_in_zero3) {
  const Model model{{.elements = 1}, {.elements = 2, .unit = 1}, {.elements = 3, .unit = 2}};
  const auto elements = [&](std::int64_t blocks) {
    std::vector<std::int64_t> sizes;
    for (const auto& unit : flat_buckets(model, {.stage = Stage::zero3, .unit_blocks = blocks})) {
      sizes.push_back(unit.at(0).layout.member(0).size());
    }
    return sizes;
  };
  EXPECT_EQ(elements(1), (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(elements(2), (std::vector<std::int64_t>{3, 1}));
  EXPECT_NE(refusal(model, {.stage = Stage::zero3, .unit_blocks = 0}).find("unit_blocks"),
            std::string::npos);
}

TEST(FlatBuckets, leaves_travel_as_they_are_where_they_add_up_in_shards) {
  const Model model{{1, Dtype::bf16}};
  const auto sent = [&](Stage stage, std::int64_t k, bool in_shard) {
    return flat_buckets(model,
                        {.stage = stage, .micro_batches = k, .accumulate_in_shard = in_shard})
        .at(0)
        .at(0)
        .sent_dtype;
  };
  EXPECT_EQ(sent(Stage::zero2, 4, true), Dtype::bf16);
  EXPECT_EQ(sent(Stage::zero2, 4, false), Dtype::f32);
  EXPECT_EQ(sent(Stage::zero2, 1, false), Dtype::bf16);
  EXPECT_EQ(sent(Stage::zero1, 4, true), Dtype::f32);
}

TEST(FlatBuckets, refuse_by_name_what_can_not_be_planned) {
  const Model model{{8}};
  for (const Stage stage : kStages) {
    const std::string text = refusal(model, {.stage = stage});
    if (stage == Stage::single || stage == Stage::ddp || stage == Stage::zero1 ||
        stage == Stage::zero2 || stage == Stage::zero3) {
      EXPECT_EQ(text, "");
    } else {
      EXPECT_NE(text.find(name_of(stage)), std::string::npos) << text;
      EXPECT_NE(text.find("not built yet"), std::string::npos) << text;
    }
  }
  EXPECT_NE(refusal(model, {.stage = Stage::single, .ranks = 2}).find("one rank, got 2"),
            std::string::npos);
  EXPECT_NE(refusal(model, {.ranks = 0}).find("got 0"), std::string::npos);
  EXPECT_NE(refusal(model, {.micro_batches = 0}).find("1 and 0"), std::string::npos);
  EXPECT_NE(refusal(model, {.bucket_mb = -1}).find("bucket_mb"), std::string::npos);
  EXPECT_NE(refusal(model, {.ranks = 3, .reproducible = true}).find("3 ranks"), std::string::npos);
  EXPECT_NE(refusal(model, {.micro_batches = 6, .reproducible = true}).find("6 micro-batches"),
            std::string::npos);
  EXPECT_NE(refusal({{8, Dtype::i32}}, {}).find("i32"), std::string::npos);
  EXPECT_NE(refusal({{-8}}, {}).find("-8"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::plan
