#include "checkpoint/writable_file.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace lockstep::checkpoint {
namespace {

using test::TemporaryFolder;

// What is wrong with `path`; empty when nothing is.
std::string refusal(const std::string& path) {
  try {
    check_writable_file("--plot", path);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(WritableFile, new_and_regular_files_pass_and_are_left_as_they_are) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f.svg");
  EXPECT_EQ(refusal(path), "");
  EXPECT_FALSE(std::ifstream(path).good());
  std::ofstream(path) << "text";
  EXPECT_EQ(refusal(path), "");
  EXPECT_EQ(test::contents_of(path), "text");
  EXPECT_EQ(refusal("in-the-current-folder"), "");
}

TEST(WritableFile, everything_else_is_refused_with_the_option_and_the_fix) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal(folder.file("absent/f")), "--plot " + folder.file("absent/f") + ": folder " +
                                                  folder.file("absent") +
                                                  " does not exist; make it first");
  EXPECT_NE(refusal("/dev/null").find("is no regular file; name one"), std::string::npos);
  EXPECT_NE(refusal("/").find("is a folder; name a file in it"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::checkpoint
