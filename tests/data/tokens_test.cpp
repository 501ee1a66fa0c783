#include "data/tokens.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep::data {
namespace {

using test::contents_of;
using test::TemporaryFolder;

constexpr std::string_view kText = "To be, or not to be: \xc3\xa9\xff";

struct Workspace {
  TemporaryFolder folder;
  std::string cache = folder.file("cache");
  TextSource source = inspect(folder.write("plays.txt", kText));
  std::string path = cache_path(source, cache);

  Tokens open() const { return Tokens::open(source, cache); }
};

std::string text_of(const Tokens& tokens) { return {tokens.ids().begin(), tokens.ids().end()}; }

void flip_byte(const std::string& path, std::size_t at) {
  std::string bytes = contents_of(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Tokens, AreTheBytesOfTheText) {
  const Workspace work;
  const Tokens tokens = work.open();
  EXPECT_EQ(text_of(tokens), kText);
  EXPECT_FALSE(tokens.note());
  EXPECT_EQ(std::filesystem::file_size(work.path), kText.size() + 64);
}

TEST(Tokens, ComeFromTheCacheTheSecondTime) {
  const Workspace work;
  work.open();
  const auto written = std::filesystem::last_write_time(work.path);
  // Hidden from the source's own state, so only a second encoding would see it.
  std::filesystem::remove(work.source.path);
  EXPECT_EQ(text_of(work.open()), kText);
  EXPECT_EQ(std::filesystem::last_write_time(work.path), written);
}

TEST(Tokens, StayReadableWhenTheCacheIsReplaced) {
  const Workspace work;
  const Tokens tokens = work.open();
  std::filesystem::remove(work.path);
  EXPECT_EQ(text_of(tokens), kText);
}

TEST(Tokens, ADamagedCacheIsBuiltAgain) {
  const Workspace work;
  work.open();
  const std::string good = contents_of(work.path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    flip_byte(work.path, at);
    EXPECT_EQ(text_of(work.open()), kText) << at;
    EXPECT_EQ(contents_of(work.path), good) << at;
  }
  for (const std::size_t kept : {std::size_t{0}, std::size_t{63}, good.size() - 1}) {
    std::filesystem::resize_file(work.path, kept);
    EXPECT_EQ(text_of(work.open()), kText) << kept;
  }
}

TEST(Tokens, AStaleCacheIsReplaced) {
  Workspace work;
  work.open();
  work.folder.write("plays.txt", "another text altogether");
  work.source = inspect(work.source.path);
  EXPECT_EQ(text_of(work.open()), "another text altogether");
  // An edit that keeps the size shows in the modification time.
  work.folder.write("plays.txt", "another text altogetheR");
  work.source = inspect(work.source.path);
  EXPECT_EQ(text_of(work.open()), "another text altogetheR");
  EXPECT_EQ(cache_path(work.source, work.cache), work.path);
}

TEST(Tokens, ComeFromTheTextWhereNoCacheCanBeWritten) {
  const TemporaryFolder folder;
  const TextSource source = inspect(folder.write("plays.txt", kText));
  const Tokens tokens = Tokens::open(source, folder.file("plays.txt/cache"));
  EXPECT_EQ(text_of(tokens), kText);
  ASSERT_TRUE(tokens.note());
  EXPECT_NE(tokens.note()->find("Not a directory"), std::string::npos) << *tokens.note();
  EXPECT_NE(tokens.note()->find("LOCKSTEP_CACHE"), std::string::npos) << *tokens.note();
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Tokens, ATextThatCanNotBeReadIsAUsageError) {
  const TemporaryFolder folder;
  const TextSource source{folder.file("gone"), 10, 1};
  const auto text = test::error_of<UsageError>([&] { Tokens::open(source, folder.file("cache")); });
  EXPECT_EQ(text, "--data " + source.path + ": can't be opened: No such file or directory");
}

}  // namespace
}  // namespace lockstep::data
