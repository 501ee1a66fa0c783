#include "comm/flight_record.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <vector>

namespace lockstep::comm {
namespace {

Fingerprint example() {
  Fingerprint fingerprint;
  fingerprint.sequence = 15;
  fingerprint.entered_ns = 7;
  fingerprint.kind = Kind::all_reduce;
  fingerprint.set_name("bucket 3");
  fingerprint.add({2, 64, 1000, Dtype::f32, Dtype::bf16});
  fingerprint.add({2, 8192, 3, Dtype::f64, {}});
  fingerprint.scaled = true;
  fingerprint.scale_bits = std::bit_cast<std::uint64_t>(0.5);
  return fingerprint;
}

FlightRecord placed() {
  FlightRecord record = record_of(example());
  record.group_size = 2;
  return record;
}

TEST(FlightRecord, says_what_the_operation_was) {
  const FlightRecord record = placed();
  EXPECT_EQ(record.issued_ns, 7);
  EXPECT_EQ(elements(record), "f32[1000] rounded to bf16+f64[3]");
  EXPECT_EQ(describe_briefly(record),
            "'bucket 3' (all_reduce f32[1000] rounded to bf16+f64[3], #15)");
  EXPECT_EQ(describe(record),
            "all_reduce 'bucket 3' f32[1000] rounded to bf16+f64[3] sum, scale 0.5, symmetric");
  Fingerprint barrier;
  barrier.sequence = 3;
  EXPECT_EQ(describe_briefly(record_of(barrier)), "barrier (#3)");
  EXPECT_EQ(describe(record_of(barrier)), "barrier");
}

TEST(FlightRecord, times_and_places_make_no_other_call_and_all_else_does) {
  FlightRecord later = placed();
  later.number = 9;
  later.issued_ns = later.started_ns = later.finished_ns = later.left_ns = 99;
  later.group_rank = 1;
  later.step = 4;
  EXPECT_TRUE(same_call(placed(), later));
  const std::vector<std::function<void(Fingerprint&)>> changes{
      [](Fingerprint& f) { f.sequence = 16; },
      [](Fingerprint& f) { f.kind = Kind::reduce_scatter; },
      [](Fingerprint& f) { f.set_name("bucket 4"); },
      [](Fingerprint& f) { f.part[1].count = 4; },
      [](Fingerprint& f) { f.part[0].dtype = Dtype::i32; },
      [](Fingerprint& f) { f.part[1].round_to = Dtype::bf16; },
      [](Fingerprint& f) { f.part[1].segment = 3; },
      [](Fingerprint& f) { f.part[0].offset_bytes = 128; },
      [](Fingerprint& f) { f.op = ReduceOp::max; },
      [](Fingerprint& f) { f.root = 1; },
      [](Fingerprint& f) { f.scale_bits += 1; },
      [](Fingerprint& f) { f.algorithm = Algorithm::pairwise; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Fingerprint other = example();
    changes[i](other);
    EXPECT_FALSE(same_call(record_of(example()), record_of(other))) << i;
  }
}

TEST(FlightRecord, what_no_rank_writes_is_not_readable) {
  ASSERT_TRUE(readable(placed()));
  const std::vector<std::function<void(FlightRecord&)>> damages{
      [](FlightRecord& r) { r.sequence = 0; },     [](FlightRecord& r) { r.parts = 5; },
      [](FlightRecord& r) { r.count[0] = -1; },    [](FlightRecord& r) { r.dtype[1] = 7; },
      [](FlightRecord& r) { r.round_to[0] = 99; }, [](FlightRecord& r) { r.op = 4; },
      [](FlightRecord& r) { r.group_rank = 2; },   [](FlightRecord& r) { r.kind[0] = '\0'; },
      [](FlightRecord& r) { r.name.fill('x'); },   [](FlightRecord& r) { r.group_name.fill('x'); }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    FlightRecord record = placed();
    damages[i](record);
    EXPECT_FALSE(readable(record)) << i;
  }
}

TEST(FlightRecord, texts_are_cut_to_their_place) {
  std::array<char, 5> place;
  set_text(place, "abcdefg");
  EXPECT_STREQ(place.data(), "abcd");
}

}  // namespace
}  // namespace lockstep::comm
