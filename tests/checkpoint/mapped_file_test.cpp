#include "checkpoint/mapped_file.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

namespace lockstep::checkpoint {
namespace {

std::string text_of(const MappedFile& file) { return {file.bytes().begin(), file.bytes().end()}; }

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(text_of(MappedFile(folder.write("some", "some bytes"))), "some bytes");
  EXPECT_TRUE(MappedFile(folder.write("none", "")).bytes().empty());
}

TEST(MappedFile, StaysMappedWhenMoved) {
  const test::TemporaryFolder folder;
  MappedFile first(folder.write("first", "first"));
  MappedFile second(std::move(first));
  MappedFile third(folder.write("third", "third"));
  third = std::move(second);
  EXPECT_EQ(text_of(third), "first");
}

TEST(MappedFile, RefusesAPipeWithoutWaitingForItsWriter) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, folder.path(), std::string("/dev/zero")}) {
    EXPECT_EQ(test::error_of<SystemError>([&] { const MappedFile file(path); }),
              path + ": is no regular file; name one");
  }
}

TEST(MappedFile, NamesWhatCanNotBeOpened) {
  const auto text = test::error_of<SystemError>([] { MappedFile file("/no/such/file"); });
  EXPECT_EQ(text, "/no/such/file: can't be opened: No such file or directory");
}

}  // namespace
}  // namespace lockstep::checkpoint
