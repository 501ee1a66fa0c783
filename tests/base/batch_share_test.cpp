#include "base/batch_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

using Offsets = std::vector<std::int64_t>;

// What every rank takes, batch by batch, until the epoch is over.
struct Epoch {
  std::vector<std::vector<Offsets>> batches;  // [batch][rank]
  std::map<std::int64_t, int> seen;           // how often each offset was taken
};

Epoch epoch_of(std::int64_t samples, std::int64_t batch, int ranks, Remainder remainder) {
  Epoch epoch;
  for (std::int64_t at = 0; at < samples;) {
    std::vector<Offsets>& row = epoch.batches.emplace_back();
    std::int64_t taken = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const BatchShare share = batch_share(samples - at, {batch, ranks, rank, remainder});
      Offsets& mine = row.emplace_back(static_cast<std::size_t>(share.mine.size()));
      std::iota(mine.begin(), mine.end(), at + share.mine.begin);
      for (const std::int64_t offset : mine) {
        ++epoch.seen[offset % samples];
      }
      EXPECT_TRUE(rank == 0 || share.taken == taken);
      taken = share.taken;
    }
    EXPECT_GT(taken, 0);
    at += taken;
  }
  return epoch;
}

template <class Check>
void for_every_epoch(Remainder remainder, const Check& check) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (std::int64_t samples = 0; samples <= 23; ++samples) {
      for (std::int64_t batch = 1; batch <= 4; ++batch) {
        SCOPED_TRACE(testing::Message()
                     << samples << " samples, batches of " << batch << ", " << ranks << " ranks");
        check(epoch_of(samples, batch, ranks, remainder), samples, batch, ranks);
      }
    }
  }
}

std::pair<std::size_t, std::size_t> sizes(const std::vector<Offsets>& batch) {
  const auto [least, most] = std::ranges::minmax_element(
      batch, [](const Offsets& a, const Offsets& b) { return a.size() < b.size(); });
  return {least->size(), most->size()};
}

TEST(BatchShare, UnevenTakesEachSampleOnceInOrder) {
  for_every_epoch(Remainder::uneven, [](const Epoch& epoch, std::int64_t samples, auto, auto) {
    Offsets all;
    for (const auto& batch : epoch.batches) {
      for (const Offsets& mine : batch) {
        all.insert(all.end(), mine.begin(), mine.end());
      }
      const auto [least, most] = sizes(batch);
      EXPECT_LE(most - least, 1u);
    }
    Offsets expected(static_cast<std::size_t>(samples));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(all, expected);
  });
}

TEST(BatchShare, DropLeavesOutFewerThanThereAreRanks) {
  for_every_epoch(Remainder::drop, [](const Epoch& epoch, std::int64_t samples, auto, int ranks) {
    for (const auto& batch : epoch.batches) {
      const auto [least, most] = sizes(batch);
      EXPECT_EQ(least, most);
    }
    EXPECT_EQ(static_cast<std::int64_t>(epoch.seen.size()), samples / ranks * ranks);
    for (const auto& [offset, times] : epoch.seen) {
      EXPECT_EQ(times, 1) << offset;
    }
  });
}

TEST(BatchShare, PadRepeatsTheFirstOnes) {
  for_every_epoch(Remainder::pad, [](const Epoch& epoch, std::int64_t samples, auto, int ranks) {
    std::int64_t all = 0;
    for (const auto& batch : epoch.batches) {
      const auto [least, most] = sizes(batch);
      EXPECT_EQ(least, most);
      all += static_cast<std::int64_t>(least) * ranks;
    }
    EXPECT_EQ(static_cast<std::int64_t>(epoch.seen.size()), samples);
    EXPECT_LT(all - samples, ranks);
    for (const auto& [offset, times] : epoch.seen) {
      const std::int64_t expected =
          all / std::max<std::int64_t>(samples, 1) + (offset < all % samples ? 1 : 0);
      EXPECT_EQ(times, expected) << offset;
    }
  });
}

TEST(BatchShare, OneRankWithLargerBatchesSeesTheSameBatches) {
  for (const int ranks : {2, 3, 4, 7}) {
    const Epoch several = epoch_of(50, 2, ranks, Remainder::uneven);
    const Epoch one = epoch_of(50, 2 * ranks, 1, Remainder::uneven);
    ASSERT_EQ(several.batches.size(), one.batches.size());
    for (std::size_t batch = 0; batch < one.batches.size(); ++batch) {
      Offsets together;
      for (const Offsets& mine : several.batches[batch]) {
        together.insert(together.end(), mine.begin(), mine.end());
      }
      EXPECT_EQ(together, one.batches[batch][0]);
    }
  }
}

}  // namespace
}  // namespace lockstep
