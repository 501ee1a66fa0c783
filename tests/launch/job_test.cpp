#include "launch/job.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::launch {
namespace {

std::string value_in(const std::vector<std::string>& environment, const std::string& name) {
  std::string value = "(unset)";
  int count = 0;
  for (const std::string& variable : environment) {
    if (variable.starts_with(name + "=")) {
      value = variable.substr(name.size() + 1);
      ++count;
    }
  }
  EXPECT_LE(count, 1) << name;
  return value;
}

LaunchOptions two_ranks() {
  LaunchOptions options;
  options.ranks = 2;
  options.command = {"true"};
  return options;
}

TEST(Job, environment_replaces_its_own_variables_and_keeps_the_others) {
  ::setenv("RANK", "99", 1);
  ::setenv("LOCKSTEP_TEST_KEPT", "a=b c", 1);
  ::setenv("LOCKSTEP_DEADLINE", "77", 1);
  const Job job = make_job(two_ranks());
  const auto environment = environment_of(job, 1);
  EXPECT_EQ(value_in(environment, "RANK"), "1");
  EXPECT_EQ(value_in(environment, "WORLD_SIZE"), "2");
  EXPECT_EQ(value_in(environment, "LOCAL_RANK"), "1");
  EXPECT_EQ(value_in(environment, "LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(value_in(environment, "MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(value_in(environment, "MASTER_PORT"), std::to_string(job.port));
  EXPECT_EQ(value_in(environment, "LOCKSTEP_JOB"), job.nonce);
  EXPECT_EQ(value_in(environment, "LOCKSTEP_CONTROL"), job.control);
  EXPECT_EQ(value_in(environment, "LOCKSTEP_TEST_KEPT"), "a=b c");
  EXPECT_EQ(value_in(environment, "LOCKSTEP_DEADLINE"), "77");
}

TEST(Job, H42_the_launchers_deadline_reaches_the_ranks) {
  ::setenv("LOCKSTEP_DEADLINE", "77", 1);
  LaunchOptions options = two_ranks();
  options.deadline_s = 2;
  EXPECT_EQ(value_in(environment_of(make_job(options), 0), "LOCKSTEP_DEADLINE"), "2");
}

TEST(Job, the_flight_recorders_folder_reaches_ranks_that_change_theirs) {
  LaunchOptions options = two_ranks();
  options.flight = "some/folder";
  EXPECT_EQ(value_in(environment_of(make_job(options), 1), "LOCKSTEP_FLIGHT"),
            std::filesystem::current_path().string() + "/some/folder");
}

TEST(Job, L55_threads_of_the_environment_that_are_no_number_are_refused) {
  for (const char* const threads : {"0", "-5", "junk", ",2", "2x"}) {
    ::setenv("OMP_NUM_THREADS", threads, 1);
    try {
      make_job(two_ranks());
      ADD_FAILURE() << threads;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("got '" + std::string(threads) + "'"),
                std::string::npos)
          << error.what();
    }
  }
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(Job, L55_threads_of_the_options_beat_the_users_environment_beats_a_share) {
  LaunchOptions options = two_ranks();
  ::unsetenv("OMP_NUM_THREADS");
  const Job shared = make_job(options);
  EXPECT_EQ(shared.threads, std::to_string(shared.placement.threads_per_rank));
  ::setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(make_job(options).threads, "3,2");
  options.threads = 7;
  EXPECT_EQ(make_job(options).threads, "7");
  ::unsetenv("OMP_NUM_THREADS");
}

TEST(Job, names_and_ports_differ_between_jobs) {
  const Job one = make_job(two_ranks());
  const Job other = make_job(two_ranks());
  EXPECT_EQ(one.nonce.size(), 32u);
  EXPECT_NE(one.nonce, other.nonce);
  EXPECT_NE(one.control.find(one.nonce), std::string::npos);
  EXPECT_GT(one.port, 1023);
}

TEST(Job, describes_itself_in_one_line) {
  LaunchOptions options = two_ranks();
  options.threads = 1;
  Job job = make_job(options);
  job.placement.cores_of_rank = {{0, 1}, {2, 3}};
  job.port = 1234;
  EXPECT_EQ(describe(job),
            "2 ranks on 4 cores, 1 thread each (OMP_NUM_THREADS), address 127.0.0.1:1234");
}

TEST(Job, programs_are_found_as_a_shell_does) {
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  ::setenv("PATH", "/nowhere::/bin", 1);
  EXPECT_EQ(find_program("sh"), "/bin/sh");
  for (const char* const wrong : {"no-such-program", "/no/such", "/etc", "/etc/passwd", ""}) {
    EXPECT_THROW(find_program(wrong), UsageError) << wrong;
  }
}

TEST(Job, nothing_to_launch_is_a_usage_error) { EXPECT_THROW(make_job({}), UsageError); }

}  // namespace
}  // namespace lockstep::launch
