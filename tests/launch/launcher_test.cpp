// The launcher as users meet it: the program `lockstep launch` with a rank program without
// LibTorch.
#include "launch/launcher.h"

#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;
using lockstep::test::lines_of;
using lockstep::test::StartedProgram;
using Words = std::vector<std::string>;

Words launch_words(int ranks, const Words& command) {
  Words words{LOCKSTEP_PROGRAM, "launch", "-n", std::to_string(ranks), "--"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Words rank_words(int ranks, const std::string& mode) {
  return launch_words(ranks, {LOCKSTEP_RANK_PROGRAM, mode});
}

Words shell_words(const std::string& script) { return {"/bin/sh", "-c", script}; }

// The closing lines: what the launcher itself says about ranks at the end.
std::vector<std::string> closing_lines(const StartedProgram& job) {
  std::vector<std::string> closing;
  for (const std::string& line : lines_of(job.error())) {
    if (line.starts_with("lockstep: rank") || line.starts_with("lockstep: ended by")) {
      closing.push_back(line);
    }
  }
  return closing;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// The launcher's child of the launcher's own name.
pid_t supervisor_of(const StartedProgram& job) {
  const std::string pid = std::to_string(job.pid());
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  for (pid_t child = 0; children >> child;) {
    std::string name;
    std::ifstream("/proc/" + std::to_string(child) + "/comm") >> name;
    if (name == "lockstep") {
      return child;
    }
  }
  return -1;
}

struct Death {
  const char* mode;
  const char* first_line;
};

class H40_RankOneOfFour : public ::testing::TestWithParam<Death> {};

TEST_P(H40_RankOneOfFour, ends_all_within_seconds_and_is_named_first) {
  StartedProgram job(rank_words(4, GetParam().mode));
  EXPECT_EQ(job.wait(5s), 1) << job.error();
  const auto closing = closing_lines(job);
  ASSERT_EQ(closing.size(), 2u) << job.error();
  EXPECT_EQ(closing[0].find(GetParam().first_line), 0u) << closing[0];
  EXPECT_EQ(closing[1],
            "lockstep: ranks 0, 2 and 3: still running after that, ended by the launcher");
  EXPECT_TRUE(job.nothing_left());
}

INSTANTIATE_TEST_SUITE_P(
    Deaths, H40_RankOneOfFour,
    ::testing::Values(Death{"exception", "lockstep: rank 1: killed by signal 6 (SIGABRT): "},
                      Death{"bad_alloc", "lockstep: rank 1: killed by signal 6 (SIGABRT): "},
                      Death{"exit3", "lockstep: rank 1: exited with status 3"},
                      Death{"segv", "lockstep: rank 1: killed by signal 11 (SIGSEGV)"},
                      Death{"kill9", "lockstep: rank 1: killed by signal 9 (SIGKILL)"}),
    [](const auto& tested) { return std::string(tested.param.mode); });

TEST(Launcher, H40_the_last_line_of_a_rank_that_reports_nothing_is_repeated) {
  StartedProgram job(rank_words(4, "exception"));
  EXPECT_EQ(job.wait(5s), 1);
  EXPECT_EQ(closing_lines(job).at(0),
            "lockstep: rank 1: killed by signal 6 (SIGABRT):   what():  no such token");
}

TEST(Launcher, H40_a_cause_reported_late_stands_before_its_consequences) {
  StartedProgram job(rank_words(4, "wrong-order"));
  EXPECT_EQ(job.wait(5s), 1);
  const std::vector<std::string> expected{"lockstep: rank 1: the disk is full",
                                          "lockstep: ranks 0, 2 and 3: rank 1 was lost"};
  EXPECT_EQ(closing_lines(job), expected) << job.error();
}

TEST(Launcher, H40_a_rank_that_reports_and_does_not_leave_is_ended) {
  StartedProgram job(rank_words(2, "stuck"));
  EXPECT_EQ(job.wait(5s), 1);
  EXPECT_EQ(closing_lines(job).at(0), "lockstep: rank 1: stuck after a failure");
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, H40_works_where_the_output_is_closed) {
  StartedProgram job(shell_words("exec " LOCKSTEP_PROGRAM " launch -n 4 -- " LOCKSTEP_RANK_PROGRAM
                                 " segv >&- 2>&-"));
  EXPECT_EQ(job.wait(5s), 1);
  EXPECT_TRUE(job.nothing_left());
}

class Worlds : public ::testing::TestWithParam<int> {};

TEST_P(Worlds, ranks_get_the_variables_of_torchrun) {
  const int ranks = GetParam();
  StartedProgram job(launch_words(
      ranks, shell_words("echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR "
                         "${LOCKSTEP_JOB:+job} ${LOCKSTEP_CONTROL:+control}")));
  EXPECT_EQ(job.wait(), 0) << job.error();
  std::multiset<std::string> expected;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string r = std::to_string(rank);
    const std::string n = std::to_string(ranks);
    expected.insert((ranks == 1 ? "" : "[" + r + "] ") + r + " " + n + " " + r + " " + n +
                    " 127.0.0.1 job control");
  }
  const auto lines = lines_of(job.output());
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()), expected);
  EXPECT_TRUE(job.nothing_left());
}

INSTANTIATE_TEST_SUITE_P(Launcher, Worlds, ::testing::Values(1, 2, 3, 4, 7));

TEST(Launcher, L50_a_taken_default_port_does_not_matter) {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(29500);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  StartedProgram job(launch_words(2, shell_words("echo $MASTER_PORT")));
  EXPECT_EQ(job.wait(), 0);
  ::close(taken);
  const auto lines = lines_of(job.output());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].substr(4), lines[1].substr(4));
  EXPECT_NE(lines[0].substr(4), "29500");
  // Printed, so that the user can find it.
  EXPECT_NE(job.error().find("address 127.0.0.1:" + lines[0].substr(4)), std::string::npos);
}

TEST(Launcher, L51_addresses_are_ipv4_and_only_one_line_is_said) {
  StartedProgram job(launch_words(2, shell_words("echo $MASTER_ADDR")),
                     {"MASTER_ADDR=localhost", "MASTER_PORT=29500"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(count_of(job.output(), "127.0.0.1"), 2u);
  EXPECT_EQ(lines_of(job.error()).size(), 1u) << job.error();
}

TEST(Launcher, L55_the_users_threads_win_and_are_printed) {
  StartedProgram job(launch_words(2, shell_words("echo threads=$OMP_NUM_THREADS")),
                     {"OMP_NUM_THREADS=5"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(count_of(job.output(), "threads=5"), 2u) << job.output();
  EXPECT_NE(job.error().find("5 threads each (OMP_NUM_THREADS)"), std::string::npos);
}

TEST(Launcher, L55_threads_default_to_a_share_of_at_least_one) {
  StartedProgram job(launch_words(64, shell_words("echo threads=$OMP_NUM_THREADS.")),
                     {"OMP_NUM_THREADS="});
  EXPECT_EQ(job.wait(), 0);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const std::string expected = "threads=" + std::to_string(std::max(1L, cores / 64)) + ".";
  EXPECT_EQ(count_of(job.output(), expected), 64u) << job.output();
}

TEST(Launcher, ranks_read_nothing_and_hold_no_descriptors_of_the_launcher) {
  StartedProgram job(rank_words(3, "descriptors"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(count_of(job.output(), "3 descriptors"), 3u) << job.output();
  StartedProgram reader(shell_words("echo hello | " LOCKSTEP_PROGRAM " launch -n 2 -- cat"));
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(reader.output(), "");
}

TEST(Launcher, output_is_whole_lines_and_none_is_lost_at_a_ranks_death) {
  StartedProgram job(rank_words(2, "flood"));
  EXPECT_EQ(job.wait(), 1);
  for (const int rank : {0, 1}) {
    const std::string prefix = "[" + std::to_string(rank) + "] ";
    const std::string line = prefix + std::string(100'000, static_cast<char>('a' + rank)) + "\n";
    EXPECT_EQ(count_of(job.output(), line), 20u);
    EXPECT_EQ(count_of(job.output(), prefix + "the end\n"), 1u);
  }
}

TEST(Launcher, a_reader_that_leaves_ends_the_ranks_and_not_the_machine) {
  StartedProgram job(shell_words(LOCKSTEP_PROGRAM " launch -n 2 -- yes | head -n 1"));
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(lines_of(job.output()).size(), 1u);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, output_that_can_not_be_written_is_said) {
  StartedProgram job(shell_words("exec " LOCKSTEP_PROGRAM " launch -n 2 -- echo hello >/dev/full"));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_EQ(count_of(job.error(), "standard output can't be written (No space left on device)"), 1u)
      << job.error();
}

struct Signal {
  int number;
  const char* name;
};

class UserSignals : public ::testing::TestWithParam<Signal> {};

TEST_P(UserSignals, end_the_job_with_128_plus_the_signal) {
  StartedProgram job(rank_words(2, "wait"));
  ASSERT_TRUE(job.wait_for_text("[0] ready") && job.wait_for_text("[1] ready"));
  ::kill(job.pid(), GetParam().number);
  EXPECT_EQ(job.wait(5s), 128 + GetParam().number);
  EXPECT_EQ(closing_lines(job),
            std::vector<std::string>{std::string("lockstep: ended by ") + GetParam().name});
  EXPECT_TRUE(job.nothing_left());
}

INSTANTIATE_TEST_SUITE_P(Launcher, UserSignals,
                         ::testing::Values(Signal{SIGINT, "SIGINT"}, Signal{SIGTERM, "SIGTERM"},
                                           Signal{SIGHUP, "SIGHUP"}, Signal{SIGQUIT, "SIGQUIT"}),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Launcher, ranks_that_ignore_signals_are_killed_after_a_grace) {
  StartedProgram job(rank_words(2, "ignore-signals"));
  ASSERT_TRUE(job.wait_for_text("[0] ready") && job.wait_for_text("[1] ready"));
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.wait(8s), 128 + SIGINT);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, a_second_signal_kills_at_once) {
  StartedProgram job(rank_words(2, "ignore-signals"));
  ASSERT_TRUE(job.wait_for_text("[0] ready") && job.wait_for_text("[1] ready"));
  ::kill(job.pid(), SIGINT);
  ::usleep(100'000);
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.wait(2s), 128 + SIGINT);  // the grace is 3 s
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, a_signal_ends_the_job_before_all_ranks_have_been_started) {
  constexpr int kRanks = 1000;
  StartedProgram job(launch_words(kRanks, shell_words("echo started; exec sleep 60")));
  ASSERT_TRUE(job.wait_for_text("[0] started"));
  ::kill(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(20s), 128 + SIGTERM);
  EXPECT_LT(count_of(job.output(), "started"), static_cast<std::size_t>(kRanks));
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, nothing_is_left_when_the_launcher_is_killed) {
  StartedProgram job(rank_words(3, "ignore-signals"));
  for (const char* const text : {"[0] ready", "[1] ready", "[2] ready"}) {
    ASSERT_TRUE(job.wait_for_text(text));
  }
  EXPECT_EQ(job.marked_processes().size(), 2u + 3u + 3u);  // launcher, supervisor, ranks, theirs
  ::kill(job.pid(), SIGKILL);
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, nothing_is_left_when_the_supervisor_is_killed) {
  StartedProgram job(rank_words(3, "ignore-signals"));
  for (const char* const text : {"[0] ready", "[1] ready", "[2] ready"}) {
    ASSERT_TRUE(job.wait_for_text(text));
  }
  const pid_t supervisor = supervisor_of(job);
  ASSERT_GT(supervisor, 0);
  ::kill(supervisor, SIGKILL);
  EXPECT_EQ(job.wait(5s), 1);
  EXPECT_NE(job.error().find("the supervisor was killed by SIGKILL"), std::string::npos);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Launcher, nothing_is_left_at_a_good_end_either) {
  StartedProgram job(rank_words(2, "leave-grandchild"));
  EXPECT_EQ(job.wait(), 0) << job.error();
  EXPECT_TRUE(job.nothing_left(0ms));
}

TEST(Launcher, children_that_were_there_before_are_left_alone) {
  const std::string shell = "sleep 60 & exec " LOCKSTEP_PROGRAM " launch -n 2 -- ";
  StartedProgram ended(shell_words(shell + "true"));
  EXPECT_EQ(ended.wait(), 0);
  EXPECT_EQ(ended.marked_processes().size(), 1u);
  StartedProgram broken(shell_words(shell + LOCKSTEP_RANK_PROGRAM " wait"));
  ASSERT_TRUE(broken.wait_for_text("[0] ready") && broken.wait_for_text("[1] ready"));
  ::kill(supervisor_of(broken), SIGKILL);
  EXPECT_EQ(broken.wait(), 1);
  EXPECT_EQ(broken.marked_processes().size(), 1u);
}

TEST(Launcher, a_rank_may_end_before_the_others) {
  StartedProgram job(launch_words(2, shell_words("[ $RANK = 0 ] || sleep 2.5; echo done")));
  EXPECT_EQ(job.wait(), 0) << job.error();
  EXPECT_EQ(count_of(job.output(), "done"), 2u);
}

TEST(Launcher, a_usage_error_of_all_ranks_is_one_line_and_exit_2) {
  StartedProgram job(launch_words(3, shell_words("echo bad value >&2; exit 2")));
  EXPECT_EQ(job.wait(), 2);
  EXPECT_EQ(closing_lines(job),
            std::vector<std::string>{"lockstep: ranks 0-2: exited with status 2: bad value"});
}

TEST(Launcher, a_program_that_can_not_run_is_one_line) {
  for (const char* const program :
       {"no-such-program", "./no/such/program", "/etc", "/etc/passwd"}) {
    StartedProgram job(launch_words(4, {program}));
    EXPECT_EQ(job.wait(), 2);
    ASSERT_EQ(lines_of(job.error()).size(), 1u) << job.error();
    EXPECT_NE(job.error().find(std::string("'") + program + "'"), std::string::npos);
  }
}

TEST(Launcher, a_file_that_the_kernel_refuses_to_execute_is_said_once) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("not-a-program", "neither ELF nor #!\n");
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  StartedProgram job(launch_words(4, {path}));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_EQ(count_of(job.error(), "can't be executed"), 1u) << job.error();
  EXPECT_TRUE(job.nothing_left());
}

}  // namespace
}  // namespace lockstep::launch
