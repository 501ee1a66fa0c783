#include "data/gpt2_files.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lockstep::data {
namespace {

using test::error_of;

TEST(Gpt2Files, HoldTheWholeVocabulary) {
  const BpeTokenizer tokenizer(read_gpt2(gpt2_folder()));
  EXPECT_EQ(tokenizer.spec(), "gpt2");
  EXPECT_EQ(tokenizer.vocabulary(), 50257);
  // Known from the model's publication: https://github.com/openai/gpt-2.
  EXPECT_EQ(tokenizer.encode("Hello world"), (std::vector<TokenId>{15496, 995}));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{50256}), "<|endoftext|>");
  EXPECT_EQ(tokenizer.encode("<|endoftext|>").size(), 7u);
}

TEST(Gpt2Files, LieWhereTheUserSays) {
  const test::TemporaryFolder folder;
  ::setenv("LOCKSTEP_GPT2", folder.path().c_str(), 1);
  EXPECT_EQ(error_of<UsageError>([] { gpt2_folder(); }),
            "--tokenizer gpt2: " + folder.file("encoder.json") +
                " does not exist; let LOCKSTEP_GPT2 name the folder of GPT-2's encoder.json and "
                "vocab.bpe");
  folder.write("encoder.json", "{}");
  folder.write("vocab.bpe", "");
  EXPECT_EQ(gpt2_folder(), folder.path());
  ::unsetenv("LOCKSTEP_GPT2");
}

TEST(Gpt2Files, ABrokenLineIsNamed) {
  const test::TemporaryFolder folder;
  folder.write("encoder.json", "{}");
  folder.write("vocab.bpe", "#version: 0.2\na b\nabc\n");
  EXPECT_EQ(error_of<UsageError>([&] { read_gpt2(folder.path()); }),
            "--tokenizer gpt2: " + folder.file("vocab.bpe") +
                " line 3: expected two tokens and a space between, got 'abc'");
}

TEST(Gpt2Files, IdentityHangsOnTheContentOfBoth) {
  const test::TemporaryFolder folder;
  const auto identity = [&](const char* vocabulary, const char* merges) {
    folder.write("encoder.json", vocabulary);
    folder.write("vocab.bpe", merges);
    return read_gpt2(folder.path()).identity;
  };
  const auto first = identity("{}", "a b\n");
  EXPECT_EQ(identity("{}", "a b\n"), first);
  EXPECT_NE(identity("{ }", "a b\n"), first);
  EXPECT_NE(identity("{}", "a c\n"), first);
}

}  // namespace
}  // namespace lockstep::data
