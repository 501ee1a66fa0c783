#include "cli/host_checks.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace lockstep::cli {
namespace {

// A host of four cores with nothing to say against it; tests break one thing.
class HostChecks : public ::testing::Test {
 protected:
  void SetUp() override {
    write("proc/cpuinfo", "model name\t: Some CPU\nflags\t: fpu avx2 fma avx512f avx512_bf16\n");
    write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n");
    write("proc/self/cgroup", "0::/job\n");
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/node/online", "0\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never\n");
    host_ = {.files = machine::FileTree(root_.path()),
             .kernel = "Linux 6.1.0 x86_64",
             .c_library = "glibc 2.36",
             .cores = {0, 1, 2, 3},
             .open_files = 20000,
             .locked_bytes = std::nullopt,
             .dev_shm_bytes = std::nullopt,
             .shared_memory_refusal = ""};
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.file(name)).parent_path());
    root_.write(name, text);
  }
  Finding finding(const std::string& name) const {
    const auto findings = check_host(host_);
    const auto found = std::ranges::find(findings, name, &Finding::name);
    EXPECT_NE(found, findings.end()) << name;
    return found == findings.end() ? Finding{} : *found;
  }
  // The finding has that verdict, says `found`, and its fix holds `fix`.
  void expect(const std::string& name, Verdict verdict, const std::string& found,
              const std::string& fix = "") const {
    const Finding actual = finding(name);
    EXPECT_EQ(actual.verdict, verdict) << name;
    EXPECT_NE(actual.found.find(found), std::string::npos) << actual.found;
    EXPECT_NE(actual.fix.find(fix), std::string::npos) << actual.fix;
    EXPECT_TRUE(verdict == Verdict::ok || !actual.fix.empty()) << name << " needs a fix";
  }

  Host host_;

 private:
  test::TemporaryFolder root_;
};

TEST_F(HostChecks, AQuietHostHasNothingToFix) {
  for (const Finding& finding : check_host(host_)) {
    EXPECT_EQ(finding.verdict, Verdict::ok) << finding.name << ": " << finding.found;
    EXPECT_EQ(finding.fix, "") << finding.name;
    EXPECT_FALSE(finding.found.empty()) << finding.name;
  }
  expect("versions", Verdict::ok, "lockstep " LOCKSTEP_VERSION ", Linux 6.1.0 x86_64, glibc 2.36");
  expect("processor", Verdict::ok, "Some CPU, last-level cache unknown");
  expect("cores", Verdict::ok, "4 usable: 4 online, affinity 0-3, control group's quota none");
  expect("topology", Verdict::ok, "1 thread per core, 1 NUMA node");
  expect("instructions", Verdict::ok, "avx2 fma avx512f avx512_bf16");
  expect("memory", Verdict::ok, "8.19 GB free, limited by MemAvailable");
  expect("shared memory", Verdict::ok, "memfds work; /dev/shm not mounted");
  expect("limits", Verdict::ok, "open files 20000, locked memory no limit");
  expect("huge pages", Verdict::ok, "shared memory advise, other memory madvise");
}

TEST_F(HostChecks, NothingReadableIsSaidAndIsNoCrash) {
  host_.files = machine::FileTree("/no/such");
  expect("processor", Verdict::ok, "unknown, last-level cache unknown");
  expect("cores", Verdict::ok, "unknown online");
  expect("instructions", Verdict::warn, "unknown", "mount /proc");
  expect("memory", Verdict::warn, "unknown", "mount /proc");
  expect("huge pages", Verdict::ok, "shared memory unknown, other memory unknown");
}

TEST_F(HostChecks, AQuotaBelowTheCoresIsWarnedOf) {
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  host_.cores = {0, 2, 3};
  expect("cores", Verdict::warn, "1 usable: 4 online, affinity 0,2-3, control group's quota 1.5",
         "at most 1 rank");
}

TEST_F(HostChecks, ThreadsOfOneCoreAreNoted) {
  write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
  write("sys/devices/system/node/online", "0-1\n");
  expect("topology", Verdict::ok, "2 threads per core, 2 NUMA nodes", "ranks x threads");
}

TEST_F(HostChecks, AProcessorWithoutBf16IsWarnedOf) {
  write("proc/cpuinfo", "flags\t: fpu avx2\n");
  expect("instructions", Verdict::warn, "avx2; no bf16 products", "--precision f32");
}

TEST_F(HostChecks, LittleMemoryNamesWhatLimitsIt) {
  write("sys/fs/cgroup/job/memory.max", "600000000\n");
  write("sys/fs/cgroup/job/memory.current", "100000000\n");
  expect("memory", Verdict::warn, "500.00 MB free, limited by control group '/job'",
         "raise the limit");
}

TEST_F(HostChecks, RefusedSharedMemoryFails) {
  host_.shared_memory_refusal = "memfd_create: Function not implemented";
  expect("shared memory", Verdict::fail, "memfd_create: Function not implemented", "seccomp");
}

TEST_F(HostChecks, FewOpenFilesAreWarnedOf) {
  host_.open_files = 256;
  expect("limits", Verdict::warn, "open files 256", "ulimit -n 1024");
}

TEST_F(HostChecks, SmallPagesSayWhichSettingToChange) {
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  expect("huge pages", Verdict::warn, "other memory never", "transparent_hugepage/enabled");
  write("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always advise [never]\n");
  expect("huge pages", Verdict::warn, "shared memory never", "transparent_hugepage/shmem_enabled");
}

TEST(ThisHost, CanBeLookedAt) {
  const Host host = this_host();
  EXPECT_FALSE(host.cores.empty());
  EXPECT_EQ(host.kernel.find("Linux "), 0u);
  EXPECT_EQ(host.shared_memory_refusal, "");
  EXPECT_NE(worst(check_host(host)), Verdict::fail);
}

}  // namespace
}  // namespace lockstep::cli
