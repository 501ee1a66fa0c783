#include "data/parallel_encode.h"

#include "data/small_tokenizer.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::data {
namespace {

using Ids = std::vector<TokenId>;

std::string some_text() {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < 5000) {
    text += random() % 4 == 0 ? "\n" : " ";
    text += std::string(random() % 9, static_cast<char>('a' + random() % 26)) + "the";
  }
  return text;
}

TEST(ParallelEncode, GivesTheSequentialTokensForEveryPartSizeAndNumberOfThreads) {
  const BpeTokenizer tokenizer(small_definition());
  const std::string text = some_text();
  const Ids expected = tokenizer.encode(text);
  for (const int threads : {1, 2, 3, 8}) {
    for (const std::size_t part_bytes : {1u, 7u, 64u, 1000u, 4999u, 1u << 20}) {
      Ids ids;
      encode_parallel(tokenizer, text,
                      {.threads = threads, .part_bytes = part_bytes, .on_progress = {}},
                      [&](auto more) { ids.insert(ids.end(), more.begin(), more.end()); });
      ASSERT_EQ(ids, expected) << threads << " threads, parts of " << part_bytes;
    }
  }
}

TEST(ParallelEncode, ProgressRisesFromNothingToAllOnTheCallersThread) {
  const BpeTokenizer tokenizer(small_definition());
  const std::string text = some_text();
  std::vector<std::int64_t> done;
  const auto caller = std::this_thread::get_id();
  encode_parallel(tokenizer, text,
                  {.threads = 2,
                   .part_bytes = 100,
                   .on_progress =
                       [&](std::int64_t bytes) {
                         EXPECT_EQ(std::this_thread::get_id(), caller);
                         done.push_back(bytes);
                       }},
                  [&](auto) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  ASSERT_GT(done.size(), 30u);
  EXPECT_EQ(done.front(), 0);
  EXPECT_EQ(done.back(), static_cast<std::int64_t>(text.size()));
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(ParallelEncode, AnEmptyTextHasNoTokens) {
  const BpeTokenizer tokenizer(small_definition());
  encode_parallel(tokenizer, "", {}, [](auto) { ADD_FAILURE(); });
}

TEST(ParallelEncode, WhatTheSinkThrowsEndsIt) {
  const BpeTokenizer tokenizer(small_definition());
  const std::string text = some_text();
  int calls = 0;
  EXPECT_EQ(test::error_of<Error>([&] {
              encode_parallel(tokenizer, text, {.threads = 3, .part_bytes = 100, .on_progress = {}},
                              [&](auto) {
                                ++calls;
                                throw Error("disk full");
                              });
            }),
            "disk full");
  EXPECT_EQ(calls, 1);
}

// A tokenizer whose encoders fail at the third part.
class Failing final : public Tokenizer {
 public:
  std::string spec() const override { return "failing"; }
  std::int64_t vocabulary() const override { return 1; }
  std::uint64_t identity() const override { return 0; }
  std::unique_ptr<Encoder> encoder() const override {
    class Third final : public Encoder {
      void encode(std::string_view text, Ids&) override {
        if (text == "c") {
          throw Error("third part");
        }
      }
    };
    return std::make_unique<Third>();
  }
  std::vector<std::size_t> parts(std::string_view text, std::size_t) const override {
    std::vector<std::size_t> ends;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      ends.push_back(end);
    }
    return ends;
  }
  std::string decode(std::span<const TokenId>) const override { return ""; }
};

TEST(ParallelEncode, WhatAnEncoderThrowsReachesTheCaller) {
  int parts = 0;
  EXPECT_EQ(test::error_of<Error>([&] {
              encode_parallel(Failing(), "abcdef",
                              {.threads = 2, .part_bytes = 1, .on_progress = {}},
                              [&](auto) { ++parts; });
            }),
            "third part");
  EXPECT_EQ(parts, 2);
}

}  // namespace
}  // namespace lockstep::data
