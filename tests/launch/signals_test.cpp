#include "launch/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

namespace lockstep::launch {
namespace {

bool blocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

TEST(Signals, are_blocked_for_the_sets_lifetime_and_read_in_turn) {
  ASSERT_FALSE(blocked(SIGTERM));
  {
    const SignalSet set;
    SignalReader reader(set);
    EXPECT_TRUE(blocked(SIGTERM));
    EXPECT_EQ(::sigismember(&set.original(), SIGTERM), 0);
    EXPECT_EQ(reader.next(), std::nullopt);
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(reader.next(), SIGTERM);
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(reader.next(), SIGINT);
    EXPECT_EQ(reader.next(), std::nullopt);
  }
  EXPECT_FALSE(blocked(SIGTERM));
}

TEST(Signals, a_hang_up_that_nohup_ignores_stays_ignored) {
  ASSERT_NE(::signal(SIGHUP, SIG_IGN), SIG_ERR);
  {
    const SignalSet set;
    SignalReader reader(set);
    ::kill(::getpid(), SIGHUP);
    EXPECT_EQ(reader.next(), std::nullopt);
  }
  ::signal(SIGHUP, SIG_DFL);
  const SignalSet set;
  SignalReader reader(set);
  ::kill(::getpid(), SIGHUP);
  EXPECT_EQ(reader.next(), SIGHUP);
}

TEST(Signals, an_interrupt_that_a_shell_ignores_is_heard) {
  ::signal(SIGINT, SIG_IGN);
  {
    const SignalSet set;
    SignalReader reader(set);
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(reader.next(), SIGINT);
  }
  ::signal(SIGINT, SIG_DFL);
}

TEST(Signals, which_end_a_job) {
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    EXPECT_TRUE(ends_job(signal));
  }
  for (const int signal : {SIGCHLD, SIGTSTP, SIGCONT}) {
    EXPECT_FALSE(ends_job(signal));
  }
}

}  // namespace
}  // namespace lockstep::launch
