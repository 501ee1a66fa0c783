#include "comm/fingerprint.h"

#include <gtest/gtest.h>

#include <bit>

namespace lockstep::comm {
namespace {

Fingerprint example() {
  Fingerprint fingerprint;
  fingerprint.sequence = 15;
  fingerprint.kind = Kind::all_reduce;
  fingerprint.set_name("bucket 3");
  fingerprint.add({2, 64, 1000, Dtype::f32, {}});
  return fingerprint;
}

TEST(Fingerprint, is_the_same_whenever_it_was_entered) {
  Fingerprint later = example();
  later.entered_ns = 7;
  EXPECT_TRUE(same(example(), later));
}

TEST(Fingerprint, every_other_field_makes_a_difference) {
  std::vector<Fingerprint> others(13, example());
  others[0].sequence = 16;
  others[1].kind = Kind::reduce_scatter;
  others[2].set_name("bucket 4");
  others[3].part[0].count = 1001;
  others[4].part[0].dtype = Dtype::i32;
  others[5].part[0].segment = 0;
  others[6].part[0].offset_bytes = 128;
  others[7].part[0].round_to = Dtype::bf16;
  others[8].op = ReduceOp::max;
  others[9].root = 1;
  others[10].algorithm = Algorithm::ring;
  others[11].add({2, 8192, 1, Dtype::f32, {}});
  others[12].part[0].widened = true;
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_FALSE(same(example(), others[i])) << i;
  }
  Fingerprint scaled = example();
  scaled.scaled = true;
  EXPECT_FALSE(same(example(), scaled));
  Fingerprint scaled_otherwise = scaled;
  scaled_otherwise.scale_bits = std::bit_cast<std::uint64_t>(0.5);
  EXPECT_FALSE(same(scaled, scaled_otherwise));
}

TEST(Fingerprint, describes_itself_in_words) {
  Fingerprint fingerprint = example();
  EXPECT_EQ(describe(fingerprint),
            "all_reduce 'bucket 3' f32[1000] sum, symmetric (segment 2, byte 64), direct");
  EXPECT_EQ(describe_briefly(fingerprint), "'bucket 3' (all_reduce f32[1000], #15)");
  fingerprint.scaled = true;
  fingerprint.scale_bits = std::bit_cast<std::uint64_t>(0.5);
  fingerprint.part[0].round_to = Dtype::bf16;
  fingerprint.add({2, 8192, 3, Dtype::f64, {}});
  EXPECT_EQ(describe(fingerprint),
            "all_reduce 'bucket 3' f32[1000] rounded to bf16+f64[3] sum, scale 0.5, symmetric "
            "(segment 2, byte 64), direct");
}

TEST(Fingerprint, a_barrier_without_name_is_described_too) {
  Fingerprint barrier;
  barrier.sequence = 3;
  EXPECT_EQ(describe(barrier), "barrier");
  EXPECT_EQ(describe_briefly(barrier), "barrier (#3)");
}

TEST(Fingerprint, keeps_47_bytes_of_a_name) {
  Fingerprint fingerprint;
  fingerprint.set_name(std::string(60, 'x'));
  EXPECT_EQ(std::string(fingerprint.name.data()), std::string(47, 'x'));
}

}  // namespace
}  // namespace lockstep::comm
