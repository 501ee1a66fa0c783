#include "data/bpe_tokenizer.h"

#include "data/small_tokenizer.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace lockstep::data {
namespace {

using Ids = std::vector<TokenId>;

TEST(BpeTokenizer, JoinsWithinWords) {
  const BpeTokenizer tokenizer(small_definition());
  EXPECT_EQ(tokenizer.vocabulary(), 302);
  EXPECT_EQ(tokenizer.encode("he the"), (Ids{256, 258}));
  EXPECT_EQ(tokenizer.encode("h e"), (Ids{'h', ' ', 'e'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(BpeTokenizer, AddedTokensStandForThemselves) {
  const BpeTokenizer tokenizer(small_definition());
  EXPECT_EQ(tokenizer.encode("he<end> is the"), (Ids{256, 300, 301, 258}));
  EXPECT_EQ(tokenizer.encode("<end"), (Ids{'<', 'e', 'n', 'd'}));
}

TEST(BpeTokenizer, WholeWordsComeBeforeMerges) {
  BpeDefinition definition = small_definition();
  definition.vocabulary.emplace("thou", 302);
  EXPECT_EQ(BpeTokenizer(definition).encode("thou").size(), 4u);
  definition.whole_words_first = true;
  EXPECT_EQ(BpeTokenizer(definition).encode("thou the"), (Ids{302, 258}));
}

TEST(BpeTokenizer, DecodesWhatItEncodedWhateverTheBytes) {
  const BpeTokenizer tokenizer(small_definition());
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text(random() % 100, ' ');
    for (char& byte : text) {
      byte = static_cast<char>(random());
    }
    text += " the<end>he\xf0\x9f\x98\x80 is";
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(BpeTokenizer, AnIdThatIsLeftOutStandsForNothing) {
  const BpeTokenizer tokenizer(small_definition());
  EXPECT_EQ(tokenizer.decode(Ids{'a', 299, 'b'}), "ab");
  EXPECT_THROW(tokenizer.decode(Ids{302}), InvariantBroken);
}

// Texts full of added tokens and places to cut, in parts of every size.
TEST(BpeTokenizer, PartsGiveTheTokensOfTheWhole) {
  constexpr std::array kPieces{"he", " the", " ", "\n", "<end>", "<", " is", "x", "\xc3\xa9", "<e"};
  BpeDefinition spaced = small_definition();
  spaced.words.space_in_front = true;
  spaced.added.push_back({"he the", 259});  // with a place to cut inside
  const std::array<BpeTokenizer, 2> tokenizers{BpeTokenizer(small_definition()),
                                               BpeTokenizer(spaced)};
  // Made once: each has a cache of words, which costs more than these texts.
  const std::array encoders{tokenizers[0].encoder(), tokenizers[1].encoder()};
  std::mt19937 random(1);
  std::size_t most_parts = 0;
  for (int round = 0; round < 20; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      text += kPieces[random() % kPieces.size()];
    }
    for (std::size_t which = 0; which < tokenizers.size(); ++which) {
      const BpeTokenizer& tokenizer = tokenizers[which];
      const Ids whole = tokenizer.encode(text);
      for (std::size_t size = 1; size <= text.size() + 1; ++size) {
        Ids ids;
        std::size_t begin = 0;
        const auto ends = tokenizer.parts(text, size);
        for (const std::size_t end : ends) {
          ASSERT_GT(end, begin);
          encoders[which]->encode(std::string_view(text).substr(begin, end - begin), ids);
          begin = end;
        }
        ASSERT_EQ(begin, text.size());
        ASSERT_EQ(ids, whole) << testing::PrintToString(text) << " in parts of " << size;
        most_parts = std::max(most_parts, ends.size());
      }
    }
  }
  EXPECT_GT(most_parts, 10u);
}

// SmolLM2's vocabulary lacks 21 bytes.
TEST(BpeTokenizer, RefusesATextWithAByteThatHasNoToken) {
  BpeDefinition definition = small_definition();
  definition.vocabulary.erase("z");
  const BpeTokenizer tokenizer(definition);
  EXPECT_EQ(tokenizer.encode("hey").size(), 2u);
  EXPECT_EQ(test::error_of<UsageError>([&] { tokenizer.encode("haze"); }),
            "--data: has byte 122, for which small.json has no token; take it out of the text, or "
            "use --tokenizer bytes");
}

TEST(BpeTokenizer, SaysWhatIsMissing) {
  const auto refusal = [](const auto& change) {
    BpeDefinition definition = small_definition();
    change(definition);
    return test::error_of<UsageError>([&] { BpeTokenizer{definition}; });
  };
  EXPECT_EQ(refusal([](auto& definition) {
              definition.merges.push_back({"he", "nce"});
            }),
            "--tokenizer small.json: has a merge of 'nce', which is not in the vocabulary; is the "
            "file complete?");
  EXPECT_EQ(
      refusal([](auto& definition) {
        definition.merges.push_back({"he", "h"});
      }),
      "--tokenizer small.json: has a merge into 'heh', which is not in the vocabulary; is the "
      "file complete?");
}

}  // namespace
}  // namespace lockstep::data
