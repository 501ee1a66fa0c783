#include "lockstep/data.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

namespace lockstep {
namespace {

using test::error_of;

using Indices = std::vector<std::int64_t>;
using Batches = std::vector<Indices>;

// Sample i is the number i.
struct Numbers : torch::data::datasets::Dataset<Numbers, std::int64_t> {
  explicit Numbers(std::int64_t count) : count_(count) {}
  std::int64_t get(std::size_t index) override { return static_cast<std::int64_t>(index); }
  std::optional<std::size_t> size() const override { return count_; }
  std::int64_t count_;
};

// The samplers of all ranks of a world.
std::vector<Sampler> samplers(std::int64_t samples, int ranks, const SamplerOptions& options = {}) {
  std::vector<Sampler> all;
  for (const Group& group : Group::of_threads(ranks)) {
    all.emplace_back(samples, group, options);
  }
  return all;
}

// One iteration of a loader.
Batches batches_of(Sampler& sampler, std::int64_t samples, std::size_t batch_size,
                   std::size_t workers = 0) {
  auto loader = torch::data::make_data_loader(
      Numbers(samples), sampler, torch::data::DataLoaderOptions(batch_size).workers(workers));
  Batches batches;
  for (const auto& batch : *loader) {
    batches.emplace_back(batch.begin(), batch.end());
  }
  return batches;
}

Indices flat(const Batches& batches) {
  Indices all;
  for (const Indices& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

Indices all_samples(std::int64_t samples) {
  Indices all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// One epoch of all ranks, sorted.
Indices together(std::vector<Sampler>& ranks, std::int64_t samples, std::size_t batch_size) {
  Indices all;
  for (Sampler& sampler : ranks) {
    const Indices mine = flat(batches_of(sampler, samples, batch_size));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::ranges::sort(all);
  return all;
}

TEST(Sampler, D37_fewer_samples_than_ranks_is_an_error_or_one_index_each) {
  for (const Remainder remainder : {Remainder::uneven, Remainder::drop}) {
    EXPECT_EQ(
        error_of<UsageError>([&] { samplers(3, 7, {.remainder = remainder}); }),
        "Sampler: a data set of 3 samples leaves ranks without any; expected at least one for "
        "each of 7 ranks: use fewer ranks, or Remainder::pad, which repeats samples");
  }
  std::vector<Sampler> ranks = samplers(3, 7, {.remainder = Remainder::pad});
  const Indices padded = together(ranks, 3, 4);
  EXPECT_EQ(padded.size(), 7u);
  EXPECT_EQ(std::set<std::int64_t>(padded.begin(), padded.end()).size(), 3u);
  for (Sampler& sampler : ranks) {
    EXPECT_EQ(flat(batches_of(sampler, 3, 4)).size(), 1u);
  }
  EXPECT_NE(error_of<UsageError>([] { samplers(0, 1, {.remainder = Remainder::pad}); }), "");
}

TEST(Sampler, D38_epochs_differ_and_each_is_shared_out_whole) {
  std::vector<Sampler> ranks = samplers(8, 2, {.seed = 1});
  std::set<Indices> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    Indices order;
    for (Sampler& sampler : ranks) {
      sampler.set_epoch(epoch);
      const Indices mine = flat(batches_of(sampler, 8, 2));
      EXPECT_EQ(mine.size(), 4u);
      order.insert(order.end(), mine.begin(), mine.end());
    }
    orders.insert(order);
    std::ranges::sort(order);
    EXPECT_EQ(order, all_samples(8));
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(Sampler, GivesEachSampleOnceWhateverDoesNotDivide) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::int64_t samples : {7, 8, 9, 20, 23}) {
      for (const std::size_t batch : {1u, 2u, 5u}) {
        std::vector<Sampler> world = samplers(samples, ranks);
        EXPECT_EQ(together(world, samples, batch), all_samples(samples))
            << samples << " " << ranks << " " << batch;
      }
    }
  }
}

TEST(Sampler, AnIterationWithoutSetEpochIsTheNextEpoch) {
  std::vector<Sampler> forgetful = samplers(10, 1);
  std::vector<Sampler> careful = samplers(10, 1);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    careful[0].set_epoch(epoch);
    EXPECT_EQ(batches_of(forgetful[0], 10, 3), batches_of(careful[0], 10, 3)) << epoch;
  }
}

// The loader keeps a copy, so the program's own would otherwise set nothing.
TEST(Sampler, SetEpochReachesTheLoadersCopy) {
  Sampler sampler = samplers(20, 1).at(0);
  auto loader = torch::data::make_data_loader(Numbers(20), sampler, 20);
  const auto epoch = [&](std::int64_t number) {
    sampler.set_epoch(number);
    return (*loader->begin());
  };
  const auto first = epoch(0);
  EXPECT_NE(epoch(1), first);
  EXPECT_EQ(epoch(0), first);
}

TEST(Sampler, BatchesAreThoseOfOneProcess) {
  Sampler one = samplers(30, 1, {.seed = 4}).at(0);
  const Batches expected = batches_of(one, 30, 12);
  for (const int ranks : {2, 3, 4}) {
    std::vector<Batches> parts;
    for (Sampler& sampler : samplers(30, ranks, {.seed = 4})) {
      parts.push_back(batches_of(sampler, 30, static_cast<std::size_t>(12 / ranks)));
    }
    for (std::size_t batch = 0; batch < expected.size(); ++batch) {
      Indices joined;
      for (const Batches& part : parts) {
        joined.insert(joined.end(), part.at(batch).begin(), part.at(batch).end());
      }
      EXPECT_EQ(joined, expected[batch]);
    }
  }
}

TEST(Sampler, WithoutShuffleKeepsTheDataSetsOrder) {
  Sampler sampler = samplers(7, 1, {.shuffle = false}).at(0);
  EXPECT_EQ(flat(batches_of(sampler, 7, 3)), all_samples(7));
  EXPECT_EQ(flat(batches_of(sampler, 7, 3)), all_samples(7));
}

Indices next_of(Sampler& sampler, std::size_t batch_size) {
  const auto indices = sampler.next(batch_size);
  return indices ? Indices(indices->begin(), indices->end()) : Indices{};
}

TEST(Sampler, GoesOnExactlyWhereItWasSaved) {
  const SamplerOptions options{.seed = 9};
  Sampler sampler = samplers(10, 1, options).at(0);
  sampler.set_epoch(2);
  sampler.reset();
  next_of(sampler, 4);
  std::stringstream file;
  torch::serialize::OutputArchive out;
  sampler.save(out);
  out.save_to(file);
  EXPECT_EQ(sampler.position(), (SamplePosition{2, 4}));
  const Indices expected = next_of(sampler, 4);

  Sampler resumed = samplers(10, 1, options).at(0);
  torch::serialize::InputArchive in;
  in.load_from(file);
  resumed.load(in);
  resumed.set_epoch(2);  // as a program's loop over epochs does
  resumed.reset();
  EXPECT_EQ(next_of(resumed, 4), expected);
  EXPECT_EQ(next_of(resumed, 4), next_of(sampler, 4));
  EXPECT_EQ(next_of(resumed, 4), Indices{});
  EXPECT_EQ(resumed.position(), (SamplePosition{3, 0}));
}

TEST(Sampler, GoesOnWithAnotherNumberOfRanks) {
  std::vector<Sampler> four = samplers(20, 4, {.seed = 2});
  Indices seen;
  for (Sampler& sampler : four) {
    sampler.reset();
    const Indices mine = next_of(sampler, 2);
    seen.insert(seen.end(), mine.begin(), mine.end());
  }
  std::vector<Sampler> three = samplers(20, 3, {.seed = 2});
  for (Sampler& sampler : three) {
    sampler.restore(four[0].position());
  }
  const Indices rest = together(three, 20, 2);
  seen.insert(seen.end(), rest.begin(), rest.end());
  std::ranges::sort(seen);
  EXPECT_EQ(seen, all_samples(20));
}

TEST(Sampler, PositionAfterBatchesIsWhatTheProgramUsed) {
  Sampler sampler = samplers(80, 2).at(0);
  auto loader = torch::data::make_data_loader(Numbers(80), sampler,
                                              torch::data::DataLoaderOptions(4).workers(2));
  auto batch = loader->begin();
  ++batch;
  EXPECT_GT(sampler.position().samples, 16);  // the loader runs ahead
  EXPECT_EQ(sampler.position_after(2, 4), (SamplePosition{0, 16}));
  while (batch != loader->end()) {
    ++batch;
  }
  EXPECT_EQ(sampler.position_after(10, 4), (SamplePosition{1, 0}));
}

TEST(Sampler, RefusesAnotherDataSetsPosition) {
  Sampler sampler = samplers(10, 1, {.seed = 1}).at(0);
  EXPECT_NE(error_of<UsageError>([&] {
              sampler.restore({0, 11});
            }).find("outside a data set of 10"),
            std::string::npos);
  EXPECT_NE(error_of<UsageError>([&] { sampler.set_epoch(-1); }), "");
  EXPECT_NE(error_of<UsageError>([&] { sampler.next(0); }), "");
  torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream file;
  out.save_to(file);
  torch::serialize::InputArchive in;
  in.load_from(file);
  Sampler other = samplers(10, 1, {.seed = 2}).at(0);
  EXPECT_NE(error_of<UsageError>([&] { other.load(in); }).find("the saved seed is 1"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
