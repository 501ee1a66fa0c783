#include "launch/rank_process.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::launch {
namespace {

Job job_of(const std::vector<std::string>& command) {
  LaunchOptions options;
  options.ranks = 2;
  options.command = command;
  return make_job(options);
}

sigset_t no_signals() {
  sigset_t mask;
  ::sigemptyset(&mask);
  return mask;
}

std::string read_all(const FileDescriptor& pipe) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    pollfd ready{pipe.get(), POLLIN, 0};
    if (::poll(&ready, 1, 10'000) <= 0) {
      return text + "(no end)";
    }
    const ssize_t bytes = ::read(pipe.get(), buffer.data(), buffer.size());
    if (bytes <= 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

int exit_code_of(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(RankProcess, runs_with_its_variables_and_both_streams_in_pipes) {
  const Job job = job_of({"sh", "-c", "echo rank $RANK; echo trouble >&2; exit 4"});
  const StartedRank rank = start_rank(job, 1, Stream::piped, no_signals());
  EXPECT_EQ(read_all(rank.output), "rank 1\n");
  EXPECT_EQ(read_all(rank.error), "trouble\n");
  EXPECT_EQ(exit_code_of(rank.pid), 4);
}

TEST(RankProcess, is_pinned_and_leads_a_group) {
  Job job = job_of({"sh", "-c", "grep Cpus_allowed_list /proc/self/status"});
  const int core = job.placement.cores_of_rank.at(0).front();
  job.placement.cores_of_rank[0] = {core};
  const StartedRank rank = start_rank(job, 0, Stream::piped, no_signals());
  EXPECT_EQ(::getpgid(rank.pid), rank.pid);
  EXPECT_NE(read_all(rank.output).find("Cpus_allowed_list:\t" + std::to_string(core) + "\n"),
            std::string::npos);
  exit_code_of(rank.pid);
}

TEST(RankProcess, starts_with_signals_as_the_user_had_them) {
  sigset_t blocked = no_signals();
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // as the launcher does
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const StartedRank rank = start_rank(job_of({"sh", "-c", "grep Sig[BI] /proc/self/status"}), 0,
                                      Stream::piped, no_signals());
  ::signal(SIGPIPE, before);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
  const std::string seen = read_all(rank.output);
  EXPECT_NE(seen.find("SigBlk:\t0000000000000000"), std::string::npos) << seen;
  EXPECT_NE(seen.find("SigIgn:\t0000000000000000"), std::string::npos) << seen;
  exit_code_of(rank.pid);
}

TEST(RankProcess, dies_with_its_parent) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const StartedRank rank = start_rank(job_of({"sleep", "60"}), 0, Stream::piped, no_signals());
    [[maybe_unused]] const auto told = ::write(ends[1], &rank.pid, sizeof(rank.pid));
    ::_exit(0);  // without ending it
  }
  exit_code_of(parent);
  pid_t rank = -1;
  ASSERT_EQ(::read(ends[0], &rank, sizeof(rank)), static_cast<ssize_t>(sizeof(rank)));
  const auto gone = [&] { return ::kill(rank, 0) != 0; };
  for (int i = 0; i < 1000 && !gone(); ++i) {
    ::usleep(10'000);
  }
  EXPECT_TRUE(gone());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(RankProcess, what_can_not_be_executed_is_an_error_and_leaves_no_child) {
  Job job = job_of({"true"});
  job.program = "/etc/passwd";
  EXPECT_THROW(start_rank(job, 0, Stream::piped, no_signals()), SystemError);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace lockstep::launch
