#include "launch/report.h"

#include "launch/control_socket.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace lockstep::launch {
namespace {

TEST(Report, errors_of_a_group_are_consequences) {
  EXPECT_EQ(kind_of(PeerLost(2, "rank 2 was lost")), FailureKind::consequence);
  EXPECT_EQ(kind_of(TimedOut("no sign of rank 2")), FailureKind::consequence);
  EXPECT_EQ(kind_of(Mismatch("ranks disagree")), FailureKind::consequence);
  EXPECT_EQ(kind_of(GroupPoisoned("failed before")), FailureKind::consequence);
}

TEST(Report, everything_else_is_a_cause) {
  EXPECT_EQ(kind_of(UsageError("--steps")), FailureKind::cause);
  EXPECT_EQ(kind_of(SystemError("mmap")), FailureKind::cause);
  EXPECT_EQ(kind_of(InvariantBroken("1 == 2")), FailureKind::cause);
  EXPECT_EQ(kind_of(std::bad_alloc()), FailureKind::cause);
  EXPECT_EQ(kind_of(std::runtime_error("x")), FailureKind::cause);
}

TEST(Report, an_exceptions_text_is_one_line_without_the_stack) {
  EXPECT_EQ(one_line("expected 3 dimensions\r\ngot 2"), "expected 3 dimensions  got 2");
  EXPECT_EQ(one_line("no memory\nException raised from alloc at alloc.cpp:127\nframe #0: main"),
            "no memory");
  EXPECT_EQ(one_line("no memory\nframe #0: main\nframe #1: start"), "no memory");
  EXPECT_EQ(one_line(""), "");
  const std::string lost = "rank 2 died\n  rank 2: gone\n  rank 0: waiting\n  and 60 more ranks";
  EXPECT_EQ(one_line(lost + "\n  else"), lost + "   else");
}

TEST(Report, without_a_launcher_the_program_has_to_print) {
  ::unsetenv("LOCKSTEP_CONTROL");
  EXPECT_FALSE(report_failure(FailureKind::cause, "nobody hears"));
  ::setenv("LOCKSTEP_CONTROL", "lockstep-test-nobody", 1);
  ::setenv("RANK", "1", 1);
  EXPECT_FALSE(report_failure(FailureKind::cause, "nobody hears"));
  ::setenv("RANK", "first", 1);
  EXPECT_FALSE(report_failure(FailureKind::cause, "no rank"));
}

TEST(Report, goes_to_the_launcher_named_in_the_environment) {
  const std::string name = "lockstep-test-report-" + std::to_string(::getpid());
  ControlSocket socket(name);
  ::setenv("LOCKSTEP_CONTROL", name.c_str(), 1);
  ::setenv("RANK", "5", 1);
  ASSERT_TRUE(report_failure(FailureKind::cause, "the disk is full"));
  const auto report = socket.receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rank, 5);
  EXPECT_EQ(report->text, "the disk is full");
}

}  // namespace
}  // namespace lockstep::launch
