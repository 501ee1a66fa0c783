#include "data/tokenizer.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lockstep::data {
namespace {

using test::TemporaryFolder;

// Opened and checked beforehand alike.
std::string refusal(const std::string& spec) {
  const std::string line = test::error_of<UsageError>([&] { open_tokenizer(spec); });
  EXPECT_EQ(test::error_of<UsageError>([&] { check_tokenizer(spec); }), line);
  return line;
}

TEST(Tokenizer, OpensWhatItsSpecNames) {
  std::set<std::uint64_t> identities;
  for (const char* spec : {"bytes", "gpt2"}) {
    check_tokenizer(spec);
    const auto tokenizer = open_tokenizer(spec);
    EXPECT_EQ(tokenizer->spec(), spec);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("To be")), "To be");
    identities.insert(tokenizer->identity());
  }
  EXPECT_EQ(identities.size(), 2u);
}

TEST(Tokenizer, AFolderMeansTheFileInIt) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal(folder.path()),
            "--tokenizer " + folder.path() +
                ": has no tokenizer.json; use bytes, gpt2 or a Hugging Face "
                "tokenizer.json");
  folder.write("tokenizer.json", "{}");
  check_tokenizer(folder.path());
  EXPECT_EQ(test::error_of<UsageError>([&] { open_tokenizer(folder.path()); }),
            "--tokenizer " + folder.file("tokenizer.json") +
                ": model.type: only \"BPE\" is supported, got null");
}

TEST(Tokenizer, OneLineForWhatIsNotThere) {
  EXPECT_EQ(refusal("/nowhere/t.json"),
            "--tokenizer /nowhere/t.json: does not exist; use bytes, gpt2 or a Hugging Face "
            "tokenizer.json");
  EXPECT_EQ(refusal("/dev/null"),
            "--tokenizer /dev/null: does not exist; use bytes, gpt2 or a Hugging Face "
            "tokenizer.json");
}

}  // namespace
}  // namespace lockstep::data
