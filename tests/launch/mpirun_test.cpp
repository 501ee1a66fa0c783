#include "launch/mpirun.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace lockstep::launch {
namespace {

// Whether `part` stands in `words` in one piece.
bool holds(const std::vector<std::string>& words, const std::vector<std::string>& part) {
  return !std::ranges::search(words, part).empty();
}

MpiJob four_on_two_hosts() {
  return {.ranks = 4,
          .hosts = {"a", "b"},
          .environment = {"OMP_NUM_THREADS=1", "TEXT=x=y z"},
          .command = {"./program", "--flag", "a b"}};
}

TEST(Mpirun, open_mpi_gets_hosts_variables_and_the_program_last) {
  const auto words = mpirun_command("/x/mpirun", MpiFamily::open_mpi, four_on_two_hosts());
  EXPECT_TRUE(holds(words, {"/x/mpirun", "-n", "4"}));
  EXPECT_TRUE(holds(words, {"--host", "a:2,b:2"}));
  EXPECT_TRUE(holds(words, {"--bind-to", "none"}));
  EXPECT_TRUE(holds(words, {"-x", "TEXT=x=y z"}));
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()),
            (std::vector<std::string>{"./program", "--flag", "a b"}));
}

TEST(Mpirun, mpich_gets_the_same_in_its_own_words) {
  const auto words = mpirun_command("mpirun", MpiFamily::mpich, four_on_two_hosts());
  EXPECT_TRUE(holds(words, {"-hosts", "a:2,b:2"}));
  EXPECT_TRUE(holds(words, {"-genv", "TEXT", "x=y z"}));
  EXPECT_FALSE(holds(words, {"--bind-to"}));
}

TEST(Mpirun, without_hosts_none_is_named) {
  MpiJob job = four_on_two_hosts();
  job.hosts.clear();
  EXPECT_FALSE(holds(mpirun_command("mpirun", MpiFamily::open_mpi, job), {"--host"}));
  EXPECT_FALSE(holds(mpirun_command("mpirun", MpiFamily::mpich, job), {"-hosts"}));
}

TEST(Mpirun, ranks_that_do_not_divide_and_hosts_named_twice_are_refused) {
  MpiJob job = four_on_two_hosts();
  job.ranks = 3;
  EXPECT_THROW(mpirun_command("mpirun", MpiFamily::open_mpi, job), UsageError);
  job = four_on_two_hosts();
  job.hosts = {"a", "b", "a"};
  job.ranks = 3;
  EXPECT_THROW(mpirun_command("mpirun", MpiFamily::mpich, job), UsageError);
}

TEST(Mpirun, the_family_is_what_version_says) {
  EXPECT_EQ(family_of("mpirun (Open MPI) 5.0.11\n"), MpiFamily::open_mpi);
  EXPECT_EQ(family_of("HYDRA build details:\n    Version: 5.0.2\n"), MpiFamily::mpich);
  EXPECT_EQ(family_of("Intel(R) MPI Library for Linux* OS, Version 2021.11\n"), MpiFamily::mpich);
  EXPECT_THROW(family_of("something else\n"), UsageError);
}

}  // namespace
}  // namespace lockstep::launch
