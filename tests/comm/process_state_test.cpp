#include "comm/process_state.h"

#include "comm/processes.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::comm {
namespace {

using Activity = ProcessState::Activity;

std::string stat_line(const std::string& name, char letter) {
  return "4711 (" + name + ") " + letter +
         " 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 98765 1000 20 0\n";
}

TEST(ProcessState, reads_the_kernels_line_whatever_the_program_is_called) {
  for (const char* name : {"rank", "a (b) c", ") R 1 2"}) {
    const auto state = parse_stat(stat_line(name, 'T'));
    ASSERT_TRUE(state) << name;
    EXPECT_EQ(state->activity, Activity::stopped);
    EXPECT_EQ(state->cpu_ms, 300 * 1000 / ::sysconf(_SC_CLK_TCK));
    EXPECT_EQ(state->started_at, 98765u);
  }
  EXPECT_EQ(parse_stat(stat_line("x", 'R'))->activity, Activity::running);
  EXPECT_EQ(parse_stat(stat_line("x", 'S'))->activity, Activity::asleep);
  EXPECT_EQ(parse_stat(stat_line("x", 'D'))->activity, Activity::on_device);
  EXPECT_EQ(parse_stat(stat_line("x", 't'))->activity, Activity::traced);
  EXPECT_EQ(parse_stat(stat_line("x", 'Z'))->activity, Activity::gone);
}

TEST(ProcessState, text_of_something_else_is_nothing) {
  for (const char* text :
       {"", "4711", "4711 (x)", "4711 (x) R 1 2 3", "4711 (x) R a b c d e f g h"}) {
    EXPECT_FALSE(parse_stat(text)) << text;
  }
}

TEST(ProcessState, a_real_process_is_followed_to_its_end) {
  EXPECT_FALSE(boot_id().empty());
  EXPECT_FALSE(host_name().empty());
  const auto own = state_of(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->activity, Activity::running);
  test::Processes ranks;
  const pid_t process = ranks.start([] { ::pause(); });
  ::kill(process, SIGSTOP);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (state_of(process)->activity != Activity::stopped &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(state_of(process)->activity, Activity::stopped);
  EXPECT_GE(state_of(process)->started_at, own->started_at);
  ::kill(process, SIGKILL);
  ranks.end(0);
  EXPECT_FALSE(state_of(process));
}

}  // namespace
}  // namespace lockstep::comm
