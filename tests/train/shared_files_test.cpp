#include "train/shared_files.h"

#include "support/ranks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace lockstep::train {
namespace {

constexpr std::int64_t kSize = 8 << 20;

std::vector<SharedFile> new_files(const std::vector<SharedFile>& before) {
  const std::vector<SharedFile> now = shared_files();
  std::vector<SharedFile> added;
  std::ranges::set_difference(now, before, std::back_inserter(added));
  return added;
}

TEST(SharedFiles, CountWhatIsAllocatedOnce) {
  const std::vector<SharedFile> before = shared_files();
  const int file = ::memfd_create("lockstep", 0);
  ASSERT_EQ(::ftruncate(file, 4 * kSize), 0);
  ASSERT_EQ(new_files(before).size(), 1u);
  EXPECT_EQ(new_files(before)[0].bytes, 0) << "a hole";
  ASSERT_EQ(::fallocate(file, 0, 0, kSize), 0);
  const int again = ::dup(file);
  const int other = ::memfd_create("somebody else's", 0);
  ASSERT_EQ(::ftruncate(other, kSize), 0);
  ASSERT_EQ(new_files(before).size(), 1u);
  EXPECT_EQ(new_files(before)[0].bytes, kSize);
  for (const int one : {file, again, other}) {
    ::close(one);
  }
  EXPECT_EQ(shared_files(), before);
}

TEST(HostBytes, CountAFileOfAllRanksOnce) {
  const auto results = test::run_ranks(3, [](Group& group) {
    const std::vector<SharedFile> found{{1, 7, 100 + group.rank()},  // one that still grows
                                        {1, 10 + static_cast<std::uint64_t>(group.rank()), 1000}};
    return std::vector<double>{static_cast<double>(host_bytes(group, found))};
  });
  for (const test::RankResult& result : results) {
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.values, std::vector<double>{3102});
  }
}

TEST(SharedFiles, AreThoseOfSymmetricMemory) {
  const auto results = test::run_ranks(2, [](Group& group) {
    const std::int64_t before = host_bytes(group, shared_files());
    const SymmetricMemory memory = group.allocate_symmetric(kSize, "memory");
    const std::int64_t after = host_bytes(group, shared_files());
    return std::vector<double>{static_cast<double>(after - before)};
  });
  for (const test::RankResult& result : results) {
    EXPECT_EQ(result.error, "");
    EXPECT_GE(result.values.at(0), 2.0 * kSize);
    EXPECT_LE(result.values.at(0), 2.0 * kSize + 100'000);
  }
}

}  // namespace
}  // namespace lockstep::train
