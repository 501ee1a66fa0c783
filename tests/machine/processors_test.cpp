#include "machine/processors.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::machine {
namespace {

// Two sockets of two cores with two threads each, one cache per socket.
class TwoSockets : public ::testing::Test {
 protected:
  void SetUp() override {
    write("proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Some CPU @ 3.0GHz\nflags\t\t: fpu avx2 avx512_bf16\n");
    write("sys/devices/system/cpu/online", "0-7\n");
    write("sys/devices/system/node/online", "0-1\n");
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
      const std::string sharers = cpu / 2 % 2 == 0 ? "0-1,4-5" : "2-3,6-7";
      write(folder + "/topology/thread_siblings_list",
            std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
      write(folder + "/cache/index0/size", "32K");
      write(folder + "/cache/index0/shared_cpu_list", std::to_string(cpu));
      write(folder + "/cache/index1/size", "16384K");
      write(folder + "/cache/index1/shared_cpu_list", sharers);
    }
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.file(name)).parent_path());
    root_.write(name, text);
  }
  FileTree files() const { return FileTree(root_.path()); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(TwoSockets, AreReadFromTheKernelsFiles) {
  EXPECT_EQ(cpu_name(files()), "Some CPU @ 3.0GHz");
  EXPECT_EQ(last_level_cache_bytes(files()), 2 * 16384 * 1024);
  const Topology found = topology(files());
  EXPECT_EQ(found.online, 8);
  EXPECT_EQ(found.threads_per_core, 2);
  EXPECT_EQ(found.numa_nodes, 2);
  EXPECT_EQ(cpu_features(files()), (std::vector<std::string>{"fpu", "avx2", "avx512_bf16"}));
}

TEST_F(TwoSockets, ArmCallsItsFlagsFeatures) {
  write("proc/cpuinfo", "Features\t: fp asimd bf16\n");
  EXPECT_EQ(cpu_features(files()), (std::vector<std::string>{"fp", "asimd", "bf16"}));
  EXPECT_EQ(cpu_name(files()), "unknown");
}

TEST(Processors, NothingToReadIsNothingKnown) {
  const FileTree none("/no/such");
  EXPECT_EQ(cpu_name(none), "unknown");
  EXPECT_EQ(last_level_cache_bytes(none), 0);
  EXPECT_EQ(topology(none).online, 0);
  EXPECT_EQ(topology(none).threads_per_core, 1);
  EXPECT_EQ(topology(none).numa_nodes, 1);
  EXPECT_TRUE(cpu_features(none).empty());
}

TEST(Processors, OfThisMachineAreThere) {
  EXPECT_GE(topology().online, 1);
  EXPECT_FALSE(cpu_features().empty());
}

TEST(Processors, KnowWhatMultipliesBf16) {
  EXPECT_FALSE(multiplies_bf16({"avx2", "avx512f", "avx512_vnni"}));
  EXPECT_TRUE(multiplies_bf16({"avx2", "avx512_bf16"}));
  EXPECT_TRUE(multiplies_bf16({"amx_bf16"}));
  EXPECT_TRUE(multiplies_bf16({"asimd", "bf16"}));
}

TEST(NumbersOf, ReadsTheKernelsLists) {
  EXPECT_EQ(numbers_of("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(numbers_of("5"), std::vector<int>{5});
  EXPECT_TRUE(numbers_of("").empty());
  EXPECT_EQ(numbers_of("x,2"), std::vector<int>{2});
}

}  // namespace
}  // namespace lockstep::machine
