#include "comm/memory_limits.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep::comm {
namespace {

// A host made of files.
class MemoryLimits : public ::testing::Test {
 protected:
  MemoryLimits() {
    files_ = {root_ + "/meminfo", root_ + "/cgroup", root_ + "/groups"};
    write("meminfo", "MemTotal: 900 kB\nMemAvailable:    100 kB\nCached: 1 kB\n");
  }

  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  test::TemporaryFolder folder_;
  std::string root_ = folder_.path();
  HostFiles files_;
};

TEST_F(MemoryLimits, available_memory_limits_where_no_group_does) {
  EXPECT_EQ(memory_room(files_).bytes, 102'400);
  EXPECT_EQ(memory_room(files_).limited_by, "MemAvailable of this host");
}

TEST_F(MemoryLimits, version_2_counts_every_ancestor_and_not_droppable_cache) {
  write("cgroup", "0::/job/step\n");
  write("groups/job/step/memory.max", "max\n");
  write("groups/job/step/memory.current", "90000\n");
  write("groups/job/memory.max", "60000\n");
  write("groups/job/memory.current", "50000\n");
  write("groups/job/memory.stat", "anon 1\ninactive_file 10000\n");
  EXPECT_EQ(memory_room(files_).bytes, 20'000);
  EXPECT_EQ(memory_room(files_).limited_by,
            "control group '/job' (limit 60000 bytes, in use 40000)");
}

TEST_F(MemoryLimits, version_1_is_read_beside_version_2) {
  write("cgroup", "4:cpu,memory:/a\n0::/\n");
  write("groups/memory/a/memory.limit_in_bytes", "5000\n");
  write("groups/memory/a/memory.usage_in_bytes", "3000\n");
  write("groups/memory/a/memory.stat", "total_inactive_file 500\n");
  EXPECT_EQ(memory_room(files_).bytes, 2'500);
}

TEST_F(MemoryLimits, the_root_inside_a_container_limits) {
  write("cgroup", "0::/outside/of/view\n");
  write("groups/memory.max", "7000\n");
  write("groups/memory.current", "1000\n");
  EXPECT_EQ(memory_room(files_).bytes, 6'000);
  EXPECT_EQ(memory_room(files_).limited_by, "control group '/' (limit 7000 bytes, in use 1000)");
}

TEST_F(MemoryLimits, a_refusal_has_the_numbers_and_the_exact_fit_passes) {
  EXPECT_NO_THROW(require_memory(102'400, "symmetric memory 'gradients'", files_));
  try {
    require_memory(102'401, "symmetric memory 'gradients'", files_);
    FAIL() << "one byte too many was accepted";
  } catch (const SystemError& error) {
    EXPECT_STREQ(error.what(),
                 "symmetric memory 'gradients': needs 102401 bytes of shared memory, but "
                 "MemAvailable of this host leaves 102400: use fewer ranks, a smaller model, or "
                 "raise the limit");
  }
}

TEST(MemoryLimitsHere, this_host_has_some) { EXPECT_GT(memory_room().bytes, 1 << 20); }

}  // namespace
}  // namespace lockstep::comm
