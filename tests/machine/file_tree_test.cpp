#include "machine/file_tree.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::machine {
namespace {

TEST(FileTree, ReadsBelowItsRoot) {
  const test::TemporaryFolder folder;
  folder.write("b", "first\nsecond\n");
  folder.write("a", "");
  const FileTree files(folder.path());
  EXPECT_EQ(files.text("/b"), "first\nsecond");
  EXPECT_EQ(files.first_line("/b"), "first");
  EXPECT_EQ(files.text("/a"), "");
  EXPECT_EQ(files.names("/"), (std::vector<std::string>{"a", "b"}));
}

TEST(FileTree, SaysWhenThereIsNothingToRead) {
  const test::TemporaryFolder folder;
  const FileTree files(folder.path());
  EXPECT_EQ(files.text("/none"), std::nullopt);
  EXPECT_EQ(files.first_line("/none"), std::nullopt);
  EXPECT_EQ(files.text("/"), std::nullopt) << "a folder";
  EXPECT_TRUE(files.names("/none").empty());
}

TEST(FileTree, FindsTheValueBehindAKey) {
  const test::TemporaryFolder folder;
  folder.write("information",
               "model\t\t: 17\nmodel name\t: AMD EPYC\nmodel name\t: other\nempty:\n");
  const FileTree files(folder.path());
  EXPECT_EQ(files.value_of("/information", "model name"), "AMD EPYC");
  EXPECT_EQ(files.value_of("/information", "empty"), "");
  EXPECT_EQ(files.value_of("/information", "name"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::machine
