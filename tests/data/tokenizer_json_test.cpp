// What it makes of texts is held to PyPI's tokenizers in tokenizer_peers_test.cpp.
#include "data/tokenizer_json.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>

namespace lockstep::data {
namespace {

using Json = nlohmann::json;
using test::TemporaryFolder;

Json small_file() {
  return Json::parse(R"({
    "normalizer": null,
    "added_tokens": [{"id": 9, "content": "<s>", "normalized": false, "special": true},
                     {"id": 8, "content": "x y", "normalized": true}],
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]},
    "model": {"type": "BPE", "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2},
              "merges": ["a b", ["b", "a"]]}})");
}

BpeDefinition read(const TemporaryFolder& folder, const Json& json) {
  return read_tokenizer_json(folder.write("tokenizer.json", json.dump()));
}

TEST(TokenizerJson, IsReadWhole) {
  const TemporaryFolder folder;
  const BpeDefinition definition = read(folder, small_file());
  EXPECT_EQ(definition.spec, folder.file("tokenizer.json"));
  EXPECT_EQ(definition.vocabulary.at("ab"), 2u);
  ASSERT_EQ(definition.merges.size(), 2u);
  EXPECT_EQ(definition.merges[1], (std::pair<std::string, std::string>{"b", "a"}));
  EXPECT_TRUE(definition.whole_words_first);
  EXPECT_EQ(definition.words.outer, std::vector<WordRule>{WordRule::each_digit});
  EXPECT_EQ(definition.words.inner, WordRule::gpt2);
  EXPECT_FALSE(definition.words.space_in_front);
  ASSERT_EQ(definition.added.size(), 1u);
  EXPECT_EQ(definition.added[0].text, "<s>");
  EXPECT_EQ(definition.added_later.at(0).id, 8u);
}

TEST(TokenizerJson, ByteLevelMayStandAlone) {
  const TemporaryFolder folder;
  Json json = small_file();
  json["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  const BpeDefinition definition = read(folder, json);
  EXPECT_TRUE(definition.words.space_in_front);
  EXPECT_FALSE(definition.words.inner);
}

struct Refused {
  std::function<void(Json&)> change;
  std::string line;  // behind "--tokenizer PATH: "
};

TEST(TokenizerJson, NamesTheFieldThatAsksForMore) {
  const TemporaryFolder folder;
  const std::vector<Refused> cases{
      {[](Json& json) {
         json["normalizer"] = {{"type", "NFC"}};
       },
       R"(normalizer: only null is supported, got {"type":"NFC"})"},
      {[](Json& json) { json["model"]["type"] = "Unigram"; },
       R"(model.type: only "BPE" is supported, got "Unigram")"},
      {[](Json& json) { json["model"]["dropout"] = 0.1; },
       "model.dropout: only null is supported, got 0.1"},
      {[](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; },
       R"(model.end_of_word_suffix: only null is supported, got "</w>")"},
      {[](Json& json) { json["model"]["byte_fallback"] = true; },
       "model.byte_fallback: only false is supported, got true"},
      {[](Json& json) { json["model"]["merges"][1] = "abc"; },
       R"(model.merges[1]: only a pair of tokens is supported, got "abc")"},
      {[](Json& json) { json["model"]["merges"] = nullptr; },
       "model.merges: only a list is supported, got null"},
      {[](Json& json) { json["pre_tokenizer"] = nullptr; },
       "pre_tokenizer.type: only Split, Digits and, at the end, ByteLevel is supported, got null"},
      {[](Json& json) { json["pre_tokenizer"]["pretokenizers"][0]["type"] = "Metaspace"; },
       R"(pre_tokenizer.pretokenizers[0].type: only Split, Digits and, at the end, ByteLevel is )"
       R"(supported, got "Metaspace")"},
      {[](Json& json) { json["pre_tokenizer"]["pretokenizers"].erase(1); },
       "pre_tokenizer: only a sequence that ends with ByteLevel is supported, got "},
      {[](Json& json) {
         json["pre_tokenizer"]["pretokenizers"][0] = {
             {"type", "Split"}, {"pattern", {{"Regex", "a+"}}}, {"behavior", "Isolated"}};
       },
       R"(pre_tokenizer.pretokenizers[0].pattern: only a regular expression of GPT-2, Llama 3, )"
       R"(Qwen 2 or for digits is supported, got {"Regex":"a+"})"},
      {[](Json& json) {
         json["pre_tokenizer"]["pretokenizers"][0] = {
             {"type", "Split"}, {"pattern", {{"Regex", R"(\p{N})"}}}, {"behavior", "Removed"}};
       },
       R"(pre_tokenizer.pretokenizers[0].behavior: only "Isolated" is supported, got "Removed")"},
      {[](Json& json) { json["added_tokens"][1]["lstrip"] = true; },
       "added_tokens[1].lstrip: only false is supported, got true"},
      {[](Json& json) { json["added_tokens"][0]["id"] = -1; },
       "added_tokens[0].id: expected an id from 0 to 16777215, got -1"},
      {[](Json& json) { json = Json::array(); },
       R"(model.type: only "BPE" is supported, got null)"},
  };
  for (const Refused& refused : cases) {
    Json json = small_file();
    refused.change(json);
    const std::string line = test::error_of<UsageError>([&] { read(folder, json); });
    const std::string expected =
        "--tokenizer " + folder.file("tokenizer.json") + ": " + refused.line;
    EXPECT_EQ(line.substr(0, expected.size()), expected);
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(TokenizerJson, IdentityIsThatOfTheContent) {
  const TemporaryFolder folder;
  const auto first = read(folder, small_file()).identity;
  EXPECT_EQ(read_tokenizer_json(folder.write("other.json", small_file().dump())).identity, first);
  Json json = small_file();
  json["model"]["vocab"]["ba"] = 3;
  EXPECT_NE(read(folder, json).identity, first);
}

}  // namespace
}  // namespace lockstep::data
