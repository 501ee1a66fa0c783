#include "checkpoint/pending_file.h"

#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

namespace lockstep::checkpoint {
namespace {

using test::contents_of;
using test::error_of;
using test::FileSizeLimit;
using test::TemporaryFolder;

TEST(PendingFile, AppearsWholeAndOnlyWhenPublished) {
  const TemporaryFolder folder;
  const std::string path = folder.file("weights");
  {
    PendingFile file(path);
    file.write("first ");
    file.write("second");
    EXPECT_FALSE(std::filesystem::exists(path));
    file.publish();
  }
  EXPECT_EQ(contents_of(path), "first second");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(PendingFile, LeavesTheOldFileAndNothingElseWhenDropped) {
  const TemporaryFolder folder;
  const std::string path = folder.write("weights", "old");
  {
    PendingFile file(path);
    file.write("half of the n");
  }
  EXPECT_EQ(contents_of(path), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(PendingFile, TwoToTheSamePlaceDoNotMeet) {
  const TemporaryFolder folder;
  const std::string path = folder.file("cache");
  PendingFile one(path);
  PendingFile other(path);
  one.write("one");
  other.write("other");
  one.publish();
  other.publish();
  EXPECT_EQ(contents_of(path), "other");
}

TEST(PendingFile, AFullDiskIsOneErrorNamingTheFileAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file("weights");
  const std::vector<char> block(1000, 'x');
  std::string text;
  {
    const FileSizeLimit limit(1500);
    text = error_of<SystemError>([&] {
      PendingFile file(path);
      file.write(block.data(), 1000);
      file.write(block.data(), 1000);
    });
  }
  EXPECT_EQ(text.find(path), 0u) << text;
  EXPECT_NE(text.find("after 1500 bytes"), std::string::npos) << text;
  EXPECT_EQ(folder.entries(), 0);
}

TEST(PendingFile, AMissingFolderIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.file("no/such/folder/weights");
  EXPECT_NE(error_of<SystemError>([&] { PendingFile file(path); }).find(path), std::string::npos);
}

TEST(WriteText, ReplacesFilesAndWritesIntoPipes) {
  const TemporaryFolder folder;
  const std::string path = folder.write("report.json", "old and longer");
  write_text(path, "new");
  EXPECT_EQ(contents_of(path), "new");
  write_text("/dev/null", "gone");
  struct stat status {};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

}  // namespace
}  // namespace lockstep::checkpoint
