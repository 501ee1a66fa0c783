#include "bench/collectives/measure.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

std::vector<Answer> measure_on_threads(int ranks, const Question& question) {
  std::vector<Group> groups = Group::of_threads(ranks);
  std::vector<Answer> answers(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        answers[r] = measure(groups[r], question, 1 << 20);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << r << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return answers;
}

TEST(Measure, floor_counts_what_a_rank_must_read_and_write) {
  EXPECT_EQ(floor_bytes(Collective::all_reduce, 1000, 4), 2000);
  EXPECT_EQ(floor_bytes(Collective::reduce_scatter, 1000, 4), 1250);
  EXPECT_EQ(floor_bytes(Collective::all_gather, 1000, 4), 1000);
}

TEST(Measure, rotation_covers_four_caches) {
  EXPECT_EQ(rotation(1'000'000, 2, 32 << 20), 1);
  EXPECT_EQ(rotation(1'048'577, 2, 32 << 20), 64);
  EXPECT_EQ(rotation(25'000'000, 2, 32 << 20), 3);
  EXPECT_EQ(rotation(100'000'000, 2, 32 << 20), 1);
  EXPECT_EQ(rotation(25'000'000, 2, 0), 1);
}

TEST(Measure, every_rank_gets_the_same_verified_answer) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const bool symmetric : {true, false}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
        const auto answers = measure_on_threads(
            3, {.collective = collective, .dtype = dtype, .bytes = 4004, .symmetric = symmetric});
        const Answer& first = answers.front();
        EXPECT_GT(first.least_ms, 0);
        EXPECT_GE(first.ms, first.least_ms);
        EXPECT_GT(first.floor_share, 0);
        EXPECT_DOUBLE_EQ(first.gb_per_s, 4004 / first.ms / 1e6);
        for (const Answer& answer : answers) {
          EXPECT_EQ(answer.ms, first.ms);
          EXPECT_EQ(answer.question.bytes, 4004);
        }
      }
    }
  }
}

TEST(Measure, every_algorithm_is_verified_and_timed) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const Algorithm algorithm :
         {Algorithm::direct, Algorithm::pairwise, Algorithm::ring, Algorithm::halving_doubling,
          Algorithm::tree, Algorithm::coordinator}) {
      for (const bool symmetric : {true, false}) {
        const auto answers = measure_on_threads(4, {.collective = collective,
                                                    .bytes = 4004,
                                                    .symmetric = symmetric,
                                                    .algorithm = algorithm});
        EXPECT_GT(answers.front().least_ms, 0) << name_of(algorithm);
      }
    }
  }
}

TEST(Measure, buffers_of_a_rotation_do_not_overlap) {
  Group group = Group::alone();
  for (const bool symmetric : {true, false}) {
    const auto buffers = make_buffers(group, {.bytes = 4100, .symmetric = symmetric}, 3);
    for (std::int64_t i = 0; i < 2; ++i) {
      EXPECT_LE(buffers->bytes(i).data() + 4100, buffers->bytes(i + 1).data());
    }
  }
}

}  // namespace
}  // namespace lockstep::bench
