// Token for token what PyPI's tiktoken and tokenizers make of the same text.
#include "data/gpt2_files.h"
#include "data/parallel_encode.h"
#include "data/text_source.h"
#include "data/tokenizer.h"
#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace lockstep::data {
namespace {

using Ids = std::vector<TokenId>;

struct Case {
  std::string tokenizer;
  std::string text;
  Ids ids;
};

Ids ids_in(const std::string& path) {
  const std::string bytes = test::contents_of(path);
  Ids ids(bytes.size() / sizeof(TokenId));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

// The peers' answers, made by one run of them.
class Peers {
 public:
  Peers() {
    test::StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_TOKENIZER_PEERS,
                                 folder_.path(), gpt2_folder(), resolve("text")});
    EXPECT_EQ(python.wait(std::chrono::minutes(8)), 0) << python.output() << python.error();
    std::ifstream cases(folder_.file("cases.txt"));
    for (Case one; cases >> one.tokenizer >> one.text;) {
      std::string ids;
      cases >> ids;
      one.ids = ids_in(folder_.file(ids));
      cases_.push_back(one);
    }
  }

  const std::vector<Case>& cases() const { return cases_; }
  std::string text_of(const Case& one) const { return test::contents_of(folder_.file(one.text)); }
  const Tokenizer& tokenizer_of(const Case& one) {
    auto& tokenizer = tokenizers_[one.tokenizer];
    if (!tokenizer) {
      tokenizer = open_tokenizer(one.tokenizer == "gpt2" ? "gpt2" : folder_.file(one.tokenizer));
    }
    return *tokenizer;
  }

 private:
  test::TemporaryFolder folder_;
  std::vector<Case> cases_;
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers_;
};

// Where two lists of ids part, in words that help.
std::string difference(const Tokenizer& tokenizer, const Ids& ours, const Ids& theirs) {
  const auto [mine, other] = std::ranges::mismatch(ours, theirs);
  const auto at = mine - ours.begin();
  const auto excerpt = [&](const Ids& ids) {
    const auto from = ids.begin() + std::max<std::ptrdiff_t>(0, at - 3);
    const Ids shown(from, std::min(from + 8, ids.end()));
    std::string text;
    for (const TokenId id : shown) {
      text += " " + std::to_string(id) + "=" + ::testing::PrintToString(tokenizer.decode({&id, 1}));
    }
    return text;
  };
  return std::to_string(ours.size()) + " and " + std::to_string(theirs.size()) + " tokens, at " +
         std::to_string(at) + ": ours" + excerpt(ours) + "; theirs" + excerpt(theirs);
}

TEST(TokenizerPeers, GiveTheSameTokensForEveryTextAndSoDoPartsOfIt) {
  Peers peers;
  ASSERT_GT(peers.cases().size(), 100u);
  for (const Case& one : peers.cases()) {
    const Tokenizer& tokenizer = peers.tokenizer_of(one);
    const std::string text = peers.text_of(one);
    const Ids ids = tokenizer.encode(text);
    EXPECT_TRUE(ids == one.ids) << one.tokenizer << " " << one.text << ": "
                                << difference(tokenizer, ids, one.ids);
    Ids in_parts;
    encode_parallel(tokenizer, text, {.threads = 2, .part_bytes = 5000, .on_progress = {}},
                    [&](auto more) { in_parts.insert(in_parts.end(), more.begin(), more.end()); });
    EXPECT_TRUE(in_parts == ids) << one.tokenizer << " " << one.text;
  }
}

}  // namespace
}  // namespace lockstep::data
