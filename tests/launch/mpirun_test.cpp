#include "launch/mpirun.h"

#include "lockstep/error.h"
#include "support/scoped_variable.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace lockstep::launch {
namespace {

// Whether `part` stands in `words` in one piece.
bool holds(const std::vector<std::string>& words, const std::vector<std::string>& part) {
  return !std::ranges::search(words, part).empty();
}

MpiJob four_on_two_hosts() {
  return {.ranks = 4,
          .hosts = {{"a", 3}, {"b", 1}},
          .environment = {"OMP_NUM_THREADS=1", "TEXT=x=y z"},
          .passed_on = {"OMP_NUM_THREADS", "PATH", "OTHER"},
          .command = {"./program", "--flag", "a b"}};
}

TEST(Mpirun, open_mpi_gets_hosts_variables_and_the_program_last) {
  const auto words = mpirun_command("/x/mpirun", MpiFamily::open_mpi, four_on_two_hosts());
  EXPECT_TRUE(holds(words, {"/x/mpirun", "-n", "4"}));
  EXPECT_TRUE(holds(words, {"--host", "a:3,b:1"}));
  EXPECT_TRUE(holds(words, {"--bind-to", "none"}));
  EXPECT_TRUE(holds(words, {"-x", "TEXT=x=y z"}));
  EXPECT_TRUE(holds(words, {"-x", "PATH", "-x", "OTHER"}));
  EXPECT_FALSE(holds(words, {"-x", "OMP_NUM_THREADS"}));  // has another value
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()),
            (std::vector<std::string>{"./program", "--flag", "a b"}));
}

TEST(Mpirun, mpich_gets_the_same_in_its_own_words) {
  const auto words = mpirun_command("mpirun", MpiFamily::mpich, four_on_two_hosts());
  EXPECT_TRUE(holds(words, {"-hosts", "a:3,b:1"}));
  EXPECT_TRUE(holds(words, {"-genv", "TEXT", "x=y z"}));
  EXPECT_TRUE(holds(words, {"-genvlist", "PATH,OTHER"}));
  EXPECT_FALSE(holds(words, {"--bind-to"}));
}

TEST(Mpirun, without_hosts_none_is_named) {
  MpiJob job = four_on_two_hosts();
  job.hosts.clear();
  EXPECT_FALSE(holds(mpirun_command("mpirun", MpiFamily::open_mpi, job), {"--host"}));
  EXPECT_FALSE(holds(mpirun_command("mpirun", MpiFamily::mpich, job), {"-hosts"}));
}

TEST(Mpirun, variables_of_the_host_the_login_and_the_launchers_stay_behind) {
  const std::vector<std::string> variables{
      "PATH=/bin",        "HOME=/root",       "TMPDIR=/tmp/x",      "LOCKSTEP_CACHE=/c",
      "SSH_CLIENT=1.2.3", "OMPI_MCA_btl=tcp", "BASH_FUNC_f%%=() {", "HOMES=kept",
      "PMI_RANK=0",       "EMPTY=",           "HYDRA_IFACE=eth0"};
  EXPECT_EQ(passed_on(variables),
            (std::vector<std::string>{"PATH", "LOCKSTEP_CACHE", "HOMES", "EMPTY"}));
}

// An installation with an mpirun that says who it is.
std::string install_mpirun(const test::TemporaryFolder& folder, const std::string& says) {
  std::filesystem::create_directories(folder.file("lib/deep/lib"));
  std::filesystem::create_directories(folder.file("bin"));
  const std::string program = folder.write("bin/mpirun", "#!/bin/sh\necho '" + says + "'\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return program;
}

TEST(Mpirun, is_found_in_path_and_beside_the_library_that_lockstep_mpi_names) {
  const test::TemporaryFolder folder;
  const test::TemporaryFolder other;
  const std::string program = install_mpirun(folder, "mpirun (Open MPI) 5.0.11");
  install_mpirun(other, "HYDRA build details:");
  const test::ScopedVariable path("PATH", other.file("bin") + ":/bin");
  EXPECT_EQ(find_mpirun().family, MpiFamily::mpich);
  for (const char* const library : {"lib/libmpi.so", "lib/deep/lib/libmpi.so.40"}) {
    const test::ScopedVariable mpi("LOCKSTEP_MPI", folder.write(library, ""));
    EXPECT_EQ(find_mpirun().program, std::filesystem::canonical(program).string());
    EXPECT_EQ(find_mpirun().family, MpiFamily::open_mpi);
  }
}

TEST(Mpirun, where_there_is_none_the_line_says_what_to_do) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable path("PATH", folder.path());
  EXPECT_NE(test::error_of<UsageError>(find_mpirun).find("install Open MPI"), std::string::npos);
  const test::ScopedVariable mpi("LOCKSTEP_MPI", folder.file("libmpi.so"));
  EXPECT_NE(test::error_of<UsageError>(find_mpirun).find("LOCKSTEP_MPI: no file"),
            std::string::npos);
}

TEST(Mpirun, the_family_is_what_version_says) {
  EXPECT_EQ(family_of("mpirun (Open MPI) 5.0.11\n"), MpiFamily::open_mpi);
  EXPECT_EQ(family_of("HYDRA build details:\n    Version: 5.0.2\n"), MpiFamily::mpich);
  EXPECT_EQ(family_of("Intel(R) MPI Library for Linux* OS, Version 2021.11\n"), MpiFamily::mpich);
  EXPECT_THROW(family_of("something else\n"), UsageError);
}

}  // namespace
}  // namespace lockstep::launch
