#include "comm/from_environment.h"

#include "base/environment.h"
#include "comm/processes.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace lockstep::comm {
namespace {

using Variables = std::map<std::string, std::string>;

// The process's environment without anything of the project's table but what a test sets.
class FromEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const auto& variable : environment::table()) {
      const std::string name(variable.name);
      if (name != "HOME") {
        ::unsetenv(name.c_str());
      }
    }
  }
  static void set(const Variables& variables) {
    clear();
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  static std::string refusal(const Variables& variables) {
    set(variables);
    try {
      world_from_environment({});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(FromEnvironment, nothing_set_means_alone) {
  const World world = world_from_environment({});
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_TRUE(world.job.empty());
  EXPECT_EQ(Group::from_environment().size(), 1);
}

TEST_F(FromEnvironment, the_launchers_variables) {
  set({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}, {"LOCKSTEP_JOB", "nonce"}});
  const World world = world_from_environment({});
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.job, "nonce");
}

TEST_F(FromEnvironment, torchruns_variables_tell_jobs_and_restarts_apart) {
  Variables variables{{"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_RUN_ID", "a"},
                      {"TORCHELASTIC_RESTART_COUNT", "0"}};
  set(variables);
  const std::string first = world_from_environment({}).job;
  for (const auto& [name, value] : Variables{{"MASTER_ADDR", "localhost"},
                                             {"MASTER_PORT", "29501"},
                                             {"TORCHELASTIC_RUN_ID", "b"},
                                             {"TORCHELASTIC_RESTART_COUNT", "1"}}) {
    Variables other = variables;
    other[name] = value;
    set(other);
    EXPECT_NE(world_from_environment({}).job, first) << name;
  }
}

TEST_F(FromEnvironment, P61_what_is_incomplete_or_impossible_is_an_exception_naming_the_variable) {
  EXPECT_EQ(refusal({{"RANK", "0"}}).rfind("RANK is set but WORLD_SIZE is not", 0), 0u);
  EXPECT_EQ(refusal({{"WORLD_SIZE", "2"}}).rfind("WORLD_SIZE is set but RANK is not", 0), 0u);
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCKSTEP_JOB", "x"}}),
            "RANK: expected 0 to 1 (WORLD_SIZE is 2), got 2");
  EXPECT_EQ(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}, {"LOCKSTEP_JOB", "x"}}),
            "RANK: expected 0 to 1 (WORLD_SIZE is 2), got -1");
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}, {"LOCKSTEP_JOB", "x"}}),
            "WORLD_SIZE: expected 1 to 65536, got 0");
  EXPECT_NE(refusal({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).find("RANK"), std::string::npos);
  EXPECT_NE(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).find("neither LOCKSTEP_JOB nor MASTER_PORT"),
      std::string::npos);
  EXPECT_NE(refusal({{"LOCKSTEP_DEADLINE", "0"}}).find("LOCKSTEP_DEADLINE"), std::string::npos);
}

TEST_F(FromEnvironment, where_mpi_started_several_ranks_it_says_who_they_are) {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    set({{variable, "3"}});
    EXPECT_EQ(world_from_environment({}).mpi, World::Mpi::introduces) << variable;
    EXPECT_EQ(started_ranks(), 3);
    set({{variable, "3"}, {"LOCKSTEP_TRANSPORT", "mpi"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}});
    EXPECT_EQ(world_from_environment({}).mpi, World::Mpi::carries) << variable;
    EXPECT_EQ(started_ranks(), 3);
    set({{variable, "1"}, {"LOCKSTEP_TRANSPORT", "mpi"}});
    EXPECT_EQ(world_from_environment({}).mpi, World::Mpi::none) << variable;
    EXPECT_EQ(started_ranks(), 1);
  }
}

TEST_F(FromEnvironment, what_no_mpirun_started_is_refused_mpi_and_several_hosts) {
  const Variables two{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCKSTEP_JOB", "x"}};
  Variables over_mpi = two;
  over_mpi["LOCKSTEP_TRANSPORT"] = "mpi";
  EXPECT_NE(refusal(over_mpi).find("no mpirun started"), std::string::npos);
  EXPECT_EQ(refusal({{"LOCKSTEP_TRANSPORT", "tcp"}}),
            "LOCKSTEP_TRANSPORT: expected auto, shm or mpi, got 'tcp'");
  const std::string hosts = refusal(
      {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCKSTEP_JOB", "x"}});
  EXPECT_NE(hosts.find("LOCAL_WORLD_SIZE is 2 and WORLD_SIZE 4"), std::string::npos) << hosts;
}

TEST_F(FromEnvironment, H42_the_deadline_variable_overrides_the_option) {
  set({{"LOCKSTEP_DEADLINE", "2"}});
  EXPECT_EQ(Group::from_environment().deadline(), std::chrono::seconds(2));
  clear();
  EXPECT_EQ(Group::from_environment({.deadline = std::chrono::seconds(9)}).deadline(),
            std::chrono::seconds(9));
}

TEST_F(FromEnvironment, the_flight_variable_records_from_the_start) {
  const test::TemporaryFolder folder;
  set({{"LOCKSTEP_FLIGHT", folder.file("flight")}});
  Group world = Group::from_environment();
  EXPECT_EQ(world.flight_folder(), folder.file("flight"));
  EXPECT_TRUE(std::filesystem::exists(folder.file("flight/rank-0.flight")));
  clear();
  EXPECT_EQ(Group::from_environment().flight_folder(), "");
}

// L51: the rendezvous on one host resolves no name and opens no port.
TEST_F(FromEnvironment, L51_localhost_without_any_network_meets) {
  test::Processes ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.start([&, r] {
      set({{"RANK", std::to_string(r)},
           {"WORLD_SIZE", "2"},
           {"MASTER_ADDR", "localhost"},
           {"MASTER_PORT", "29500"},
           {"TORCHELASTIC_RUN_ID", ranks.job()}});
      Group world = Group::from_environment({.deadline = std::chrono::seconds(20)});
      std::int64_t value = r + 1;
      world.all_reduce(std::span(&value, 1)).wait();
      if (value != 3) {
        throw std::runtime_error("wrong sum");
      }
    });
  }
  for (int r = 0; r < 2; ++r) {
    const auto ended = ranks.end(r);
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
}

}  // namespace
}  // namespace lockstep::comm
