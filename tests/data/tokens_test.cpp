#include "data/tokens.h"

#include "data/byte_tokenizer.h"
#include "data/small_tokenizer.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace lockstep::data {
namespace {

using test::contents_of;
using test::TemporaryFolder;

constexpr std::string_view kText = "To be, or not to be: \xc3\xa9\xff";

struct Workspace {
  TemporaryFolder folder;
  std::string cache = folder.file("cache");
  TextSource source = inspect(folder.write("plays.txt", kText));
  ByteTokenizer bytes;
  std::string path = cache_path(source, cache, bytes);

  Tokens open() const { return Tokens::open(source, cache, bytes); }
};

std::vector<TokenId> ids_of(const Tokens& tokens) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < tokens.ids().size(); ++i) {
    ids.push_back(tokens.ids()[i]);
  }
  return ids;
}

std::string text_of(const Tokens& tokens) { return ByteTokenizer().decode(ids_of(tokens)); }

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
  EXPECT_EQ(cache_path(work.source, work.cache, work.bytes), work.path);
}

TEST(Tokens, StayInMemoryWhereNoCacheCanBeWritten) {
  const TemporaryFolder folder;
  const TextSource source = inspect(folder.write("plays.txt", kText));
  const Tokens tokens = Tokens::open(source, folder.file("plays.txt/cache"), ByteTokenizer());
  EXPECT_EQ(text_of(tokens), kText);
  ASSERT_TRUE(tokens.note());
  EXPECT_NE(tokens.note()->find("Not a directory"), std::string::npos) << *tokens.note();
  EXPECT_NE(tokens.note()->find("LOCKSTEP_CACHE"), std::string::npos) << *tokens.note();
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Tokens, ATextThatCanNotBeReadIsAUsageError) {
  const TemporaryFolder folder;
  const TextSource source{folder.file("gone"), 10, 1, 0};
  const auto text = test::error_of<UsageError>(
      [&] { Tokens::open(source, folder.file("cache"), ByteTokenizer()); });
  EXPECT_EQ(text, "--data " + source.path + ": can't be opened: No such file or directory");
}

TEST(Tokens, ATextThatChangedSinceItWasInspectedIsAUsageErrorAndLeavesNoCache) {
  const Workspace work;
  work.folder.write("plays.txt", "another text");
  EXPECT_EQ(test::error_of<UsageError>([&] { work.open(); }),
            "--data " + work.source.path +
                ": changed while it was read; start again once it is complete");
  EXPECT_FALSE(std::filesystem::exists(work.path));
  EXPECT_EQ(work.folder.entries(), 2);  // the text and the cache's empty folder
}

TEST(Tokens, AnEditThatKeepsSizeAndTimeShowsInTheContent) {
  Workspace work;
  work.open();
  const auto time = std::filesystem::last_write_time(work.source.path);
  std::string edited(kText);
  edited.back() = 'X';
  work.folder.write("plays.txt", edited);
  std::filesystem::last_write_time(work.source.path, time);
  work.source = inspect(work.source.path);
  EXPECT_EQ(text_of(work.open()), edited);
}

TEST(Tokens, EveryTokenizerHasACacheOfItsOwnOfItsWidth) {
  const Workspace work;
  work.open();
  const BpeTokenizer small(small_definition());  // 302 ids: two bytes each
  EXPECT_EQ(ids_of(Tokens::open(work.source, work.cache, small)), small.encode(kText));
  BpeDefinition wide = small_definition();
  wide.identity = 2;
  wide.added.push_back({"or", 70'000});
  const BpeTokenizer large(wide);
  const auto ids = ids_of(Tokens::open(work.source, work.cache, large));
  EXPECT_EQ(ids, large.encode(kText));
  EXPECT_NE(std::ranges::find(ids, 70'000u), ids.end());
  EXPECT_EQ(std::filesystem::file_size(cache_path(work.source, work.cache, large)),
            4 * ids.size() + 64);
  const std::set<std::string> caches{work.path, cache_path(work.source, work.cache, small),
                                     cache_path(work.source, work.cache, large)};
  EXPECT_EQ(caches.size(), 3u);
  EXPECT_EQ(text_of(work.open()), kText);
}

TEST(Tokens, ATokenizerThatChangedIsNoticed) {
  const Workspace work;
  const BpeTokenizer small(small_definition());
  Tokens::open(work.source, work.cache, small);
  const std::string cache = test::contents_of(cache_path(work.source, work.cache, small));
  BpeDefinition changed = small_definition();
  changed.identity = 2;
  changed.merges.clear();
  const BpeTokenizer other(changed);
  // Even where the old tokens lie in its place.
  std::ofstream(cache_path(work.source, work.cache, other), std::ios::binary) << cache;
  EXPECT_EQ(ids_of(Tokens::open(work.source, work.cache, other)), other.encode(kText));
}

TEST(Tokens, TellHowFarTheyAreOnlyWhenThereIsWork) {
  const Workspace work;
  std::vector<std::int64_t> done;
  const EncodeOptions encoding{.threads = 2,
                               .part_bytes = 5,
                               .on_progress = [&](std::int64_t bytes) { done.push_back(bytes); }};
  Tokens::open(work.source, work.cache, work.bytes, encoding);
  EXPECT_EQ(done.back(), work.source.bytes);
  done.clear();
  Tokens::open(work.source, work.cache, work.bytes, encoding);
  EXPECT_TRUE(done.empty());
}

}  // namespace
}  // namespace lockstep::data
