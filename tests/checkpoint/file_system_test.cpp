#include "checkpoint/file_system.h"

#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

namespace lockstep::checkpoint {
namespace {

using test::contents_of;
using test::error_of;
using test::TemporaryFolder;

void write(const std::string& path, const std::string& text) {
  const std::array pieces{bytes_of(text).first(text.size() / 2),
                          bytes_of(text).subspan(text.size() / 2)};
  Disk().write_file(path, pieces);
}

TEST(Disk, WritesNewFilesOnly) {
  const TemporaryFolder folder;
  write(folder.file("new"), "some text");
  EXPECT_EQ(contents_of(folder.file("new")), "some text");
  EXPECT_NE(error_of<SystemError>([&] { write(folder.file("new"), "other"); }).find("File exists"),
            std::string::npos);
  EXPECT_EQ(contents_of(folder.file("new")), "some text");
}

TEST(Disk, AFullDiskNamesTheFileAndHowFarItGot) {
  const TemporaryFolder folder;
  std::string text;
  {
    const test::FileSizeLimit limit(1500);
    text = error_of<SystemError>([&] { write(folder.file("big"), std::string(4000, 'x')); });
  }
  EXPECT_EQ(text, folder.file("big") + ": writing after 1500 bytes failed: File too large");
}

TEST(Disk, MovesAndExchangesFolders) {
  const TemporaryFolder folder;
  Disk disk;
  for (const char* const name : {"a", "b"}) {
    disk.make_folder(folder.file(name));
    write(folder.file(name) + "/file", name);
  }
  disk.exchange(folder.file("a"), folder.file("b"));
  EXPECT_EQ(contents_of(folder.file("a/file")), "b");
  EXPECT_EQ(contents_of(folder.file("b/file")), "a");
  disk.rename(folder.file("a"), folder.file("c"));
  disk.flush_folder(folder.path());
  disk.remove_folder(folder.file("b"));
  EXPECT_EQ(contents_of(folder.file("c/file")), "b");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Disk, NamesWhatItCanNotDo) {
  const TemporaryFolder folder;
  Disk disk;
  const std::string path = folder.file("no/such");
  for (const std::string& text :
       {error_of<SystemError>([&] { disk.make_folder(path); }),
        error_of<SystemError>([&] { write(path, "x"); }),
        error_of<SystemError>([&] { disk.flush_folder(path); }),
        error_of<SystemError>([&] { disk.rename(path, folder.file("x")); }),
        error_of<SystemError>([&] { disk.exchange(folder.file("x"), path); })}) {
    EXPECT_EQ(text.find(path), 0u) << text;
    EXPECT_NE(text.find("No such file or directory"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
