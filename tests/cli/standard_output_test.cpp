#include "cli/standard_output.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <unistd.h>

namespace lockstep::cli {
namespace {

// What finish_output() throws after printing to `path`; the test's own output is put back.
std::string failure_when_printing_to(const char* path) {
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  std::FILE* const file = std::freopen(path, "w", stdout);
  EXPECT_NE(file, nullptr);
  std::fputs("text", stdout);
  std::string failure;
  try {
    finish_output();
  } catch (const SystemError& error) {
    failure = error.what();
  }
  std::clearerr(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  return failure;
}

TEST(StandardOutput, a_full_disk_is_a_failure) {
  EXPECT_EQ(failure_when_printing_to("/dev/full"),
            "standard output can't be written (No space left on device); what was printed is "
            "incomplete");
}

TEST(StandardOutput, prints_only_what_was_asked_for) {
  EXPECT_FALSE(print_if_asked(""));
  EXPECT_TRUE(print_if_asked("help\n"));
}

TEST(StandardOutput, what_could_be_written_is_none) {
  EXPECT_EQ(failure_when_printing_to("/dev/null"), "");
}

}  // namespace
}  // namespace lockstep::cli
