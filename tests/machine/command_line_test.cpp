#include "machine/command_line.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace lockstep::machine {
namespace {

TEST(CommandLine, IsTheProgramAndItsWords) {
  const test::TemporaryFolder root;
  std::filesystem::create_directories(root.file("proc/self"));
  root.write("proc/self/cmdline", std::string("/a/b-c\0train\0--steps\0"
                                              "20\0",
                                              24));
  EXPECT_EQ(command_line("lockstep", FileTree(root.path())), "lockstep train --steps 20");
}

TEST(CommandLine, IsTheProgramAloneWhereTheKernelDoesNotTell) {
  EXPECT_EQ(command_line("lockstep", FileTree("/no/such")), "lockstep");
}

}  // namespace
}  // namespace lockstep::machine
