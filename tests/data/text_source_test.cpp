#include "data/text_source.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;

std::string refusal(const std::string& path) {
  return error_of<UsageError>([&] { inspect(path); });
}

TEST(TextSource, ResolvesTextToTheUsersFile) {
  ::setenv("LOCKSTEP_TEXT", "/some/plays.txt", 1);
  EXPECT_EQ(resolve("text"), "/some/plays.txt");
  EXPECT_EQ(resolve("other.txt"), "other.txt");
  ::unsetenv("LOCKSTEP_TEXT");
}

TEST(TextSource, DescribesAFile) {
  const TemporaryFolder folder;
  const TextSource source = inspect(folder.write("text", "abc"));
  EXPECT_EQ(source.bytes, 3);
  EXPECT_EQ(source.path, folder.file("text"));
  EXPECT_GT(source.modified_ns, 0);
}

TEST(TextSource, OneLineForEachThingThatIsNoText) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      refusal(folder.file("missing")),
      "--data " + folder.file("missing") +
          ": can't be opened (No such file or directory); give a text file, or 'text' for the "
          "plays that scripts/setup prepares");
  EXPECT_EQ(refusal(folder.path()),
            "--data " + folder.path() + ": is a folder; expected one text file");
  EXPECT_EQ(refusal("/dev/null"), "--data /dev/null: is no file; expected one text file");
  EXPECT_EQ(refusal(folder.write("empty", "")),
            "--data " + folder.file("empty") + ": is empty; expected text to train on");
}

}  // namespace
}  // namespace lockstep::data
