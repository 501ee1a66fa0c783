#include "data/vocabulary.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

Json parse(std::string_view text) {
  return parse_json("a.json", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::string refusal(const Json& json) {
  return test::error_of<UsageError>([&] { vocabulary_of(json, "a.json: vocab"); });
}

TEST(Vocabulary, IsTokensAndIds) {
  EXPECT_EQ(vocabulary_of(parse(R"({"a": 1, "\u0120b": 0})"), "a.json"),
            (std::map<std::string, TokenId>{{"a", 1}, {"Ġb", 0}}));
}

TEST(Vocabulary, OneLineForEachThingThatIsNone) {
  EXPECT_EQ(test::error_of<UsageError>([] { parse(R"({"a": 1)"); }),
            "--tokenizer a.json: is no JSON from byte 8 on; is the file complete?");
  EXPECT_EQ(refusal(Json::array()),
            "--tokenizer a.json: vocab: expected tokens and their ids, got a JSON array");
  for (const char* id : {"-1", "1.5", "16777216", "\"1\"", "null"}) {
    EXPECT_EQ(
        refusal(parse(std::string(R"({"x": )") + id + "}")),
        std::string("--tokenizer a.json: vocab, token 'x': expected an id from 0 to 16777215, "
                    "got ") +
            id);
  }
}

TEST(Vocabulary, AMergeHasTwoSides) {
  EXPECT_EQ(merge_of("Ġ t"), (std::pair<std::string, std::string>{"Ġ", "t"}));
  for (const char* line : {"", " ", "a", "a ", " a", "a b c", "a  b"}) {
    EXPECT_EQ(merge_of(line), std::nullopt) << line;
  }
}

}  // namespace
}  // namespace lockstep::data
