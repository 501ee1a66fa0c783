#include "launch/captured.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace lockstep::launch {
namespace {

Captured shell(const std::string& script, std::vector<std::string> environment = {}) {
  return run_captured({.command = {"sh", "-c", script}, .environment = std::move(environment)});
}

TEST(Captured, KeepsWhatWasPrintedAndHowItEnded) {
  const Captured result = shell("echo to output; echo to error >&2; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.output, "to output\n");
  EXPECT_EQ(result.error, "to error\n");
  EXPECT_GT(result.seconds, 0);
}

TEST(Captured, KeepsMoreThanAPipeHolds) {
  EXPECT_EQ(shell("head -c 300000 /dev/zero | tr '\\0' x").output, std::string(300000, 'x'));
}

TEST(Captured, ReadsNothingAndSeesItsEnvironment) {
  EXPECT_EQ(shell("cat; echo $LOCKSTEP_CACHE", {"LOCKSTEP_CACHE=here"}).output, "here\n");
}

TEST(Captured, EndsWhatTakesTooLong) {
  const Captured slow = run_captured(
      {.command = {"sleep", "60"}, .environment = {}, .patience = std::chrono::milliseconds(50)});
  EXPECT_TRUE(slow.timed_out);
  EXPECT_EQ(slow.exit_code, 128 + SIGTERM);
  EXPECT_LT(slow.seconds, 30);
}

TEST(Captured, SaysWhatCannotBeStarted) {
  try {
    run_captured({.command = {"/no/such/program"}, .environment = {}});
    ADD_FAILURE() << "expected an exception";
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/program can't be started"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::launch
