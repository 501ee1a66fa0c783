#include "machine/cores.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <string>
#include <thread>

namespace lockstep::machine {
namespace {

namespace fs = std::filesystem;

// A tree of cgroup files of its own for each test.
class CpuQuota : public ::testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  std::optional<double> quota() const {
    return cpu_quota({.membership = root_ / "membership", .mount = root_});
  }

 private:
  test::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
};

TEST_F(CpuQuota, none_without_files) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(CpuQuota, version_2_takes_the_smallest_of_all_ancestors) {
  write("membership", "0::/a/b");
  write("a/b/cpu.max", "max 100000");
  EXPECT_EQ(quota(), std::nullopt);
  write("a/cpu.max", "150000 100000");
  EXPECT_EQ(quota(), 1.5);
  write("a/b/cpu.max", "400000 100000");
  EXPECT_EQ(quota(), 1.5);
  write("a/b/cpu.max", "50000 100000");
  EXPECT_EQ(quota(), 0.5);
  write("cpu.max", "20000 100000");
  EXPECT_EQ(quota(), 0.2);
}

TEST_F(CpuQuota, version_2_path_from_outside_the_container_falls_back_to_its_root) {
  write("membership", "0::/kubepods/pod1/only-outside");
  write("cpu.max", "300000 100000");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CpuQuota, version_1_reads_quota_and_period) {
  write("membership", "9:memory:/job\n4:cpu,cpuacct:/job/step");
  write("cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1");
  write("cpu,cpuacct/job/step/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "50000");
  EXPECT_EQ(quota(), 5.0);
}

TEST_F(CpuQuota, version_1_cpuset_and_cpuacct_are_other_controllers) {
  write("membership", "3:cpuset:/x\n2:cpuacct:/x");
  write("cpuset/x/cpu.cfs_quota_us", "100000");
  write("cpuset/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(CpuQuota, nonsense_is_no_quota) {
  write("membership", "garbage\n0:broken\n0::/a");
  write("a/cpu.max", "fast please");
  EXPECT_EQ(quota(), std::nullopt);
  write("a/cpu.max", "100000 0");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST(UsableCores, are_the_lesser_of_cores_and_quota) {
  EXPECT_EQ(usable_cores(4, std::nullopt), 4);
  EXPECT_EQ(usable_cores(4, 2.9), 2);
  EXPECT_EQ(usable_cores(4, 8.0), 4);
  EXPECT_EQ(usable_cores(4, 0.2), 1);
}

TEST(AllowedCores, are_those_of_the_affinity) {
  const std::vector<int> before = allowed_cores();
  ASSERT_FALSE(before.empty());
  EXPECT_TRUE(std::ranges::is_sorted(before));
  std::thread([&] {  // affinity belongs to the thread
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(before.back()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(allowed_cores(), std::vector<int>{before.back()});
  })
      .join();
}

}  // namespace
}  // namespace lockstep::machine
