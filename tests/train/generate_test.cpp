#include "train/generate.h"

#include "data/byte_tokenizer.h"
#include "data/small_tokenizer.h"
#include "lockstep/error.h"
#include "models/gpt2.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace lockstep::train {
namespace {

const data::ByteTokenizer kBytes;

models::Gpt2 small_model() {
  torch::manual_seed(1);
  return models::Gpt2(models::Gpt2Config{
      .layers = 1, .width = 16, .heads = 2, .context = 8, .vocabulary = 300, .dropout = 0.5});
}

TEST(SampleText, HangsOnItsSeedOnly) {
  models::Gpt2 model = small_model();
  const auto text = [&](std::uint64_t seed) {
    return sample_text(*model, kBytes, "To be", {.bytes = 20, .seed = seed});
  };
  const std::string first = text(1);
  torch::manual_seed(99);
  EXPECT_EQ(text(1), first);
  EXPECT_NE(text(2), first);
  EXPECT_EQ(first.size(), 20u);
  EXPECT_TRUE(model->is_training());
}

TEST(SampleText, RefusesLogitsThatAreNotFinite) {
  const torch::NoGradGuard no_gradients;
  models::Gpt2 model = small_model();
  model->named_parameters()["transformer.ln_f.weight"].fill_(NAN);
  EXPECT_NE(test::error_of<Error>([&] {
              sample_text(*model, kBytes, "a", {.bytes = 1});
            }).find("logits are not finite"),
            std::string::npos);
}

TEST(SampleText, LooksBackNoFurtherThanItsWindow) {
  models::Gpt2 model = small_model();
  const auto likeliest = [&](const char* prompt, std::int64_t window) {
    return sample_text(*model, kBytes, prompt, {.bytes = 30, .temperature = 0, .window = window});
  };
  EXPECT_EQ(likeliest("abcde", 2), likeliest("zyxde", 2));
  EXPECT_NE(likeliest("abcde", 1024), likeliest("zyxwde", 1024));
}

TEST(SampleText, LeavesLibTorchsGeneratorAlone) {
  models::Gpt2 model = small_model();
  torch::manual_seed(5);
  const auto expected = torch::rand({1}).item<float>();
  torch::manual_seed(5);
  sample_text(*model, kBytes, "", {.bytes = 3});
  EXPECT_EQ(torch::rand({1}).item<float>(), expected);
}

TEST(SampleText, AtTemperatureZeroTakesTheLikeliest) {
  models::Gpt2 model = small_model();
  model->eval();
  const std::string text = sample_text(*model, kBytes, "ab", {.bytes = 1, .temperature = 0});
  const torch::NoGradGuard no_gradients;
  const auto logits = model->forward(torch::tensor({{'a', 'b'}}, torch::kInt64));
  const auto best = logits.select(1, 1).narrow(1, 0, 256).argmax(1).item<std::int64_t>();
  EXPECT_EQ(static_cast<unsigned char>(text[0]), best);
  EXPECT_EQ(sample_text(*model, kBytes, "ab", {.bytes = 9, .temperature = 0, .seed = 1}),
            sample_text(*model, kBytes, "ab", {.bytes = 9, .temperature = 0, .seed = 2}));
}

// The logits of an untrained model are nearly equal: all bytes should come, about as often.
TEST(SampleText, DrawsFromTheWholeDistribution) {
  models::Gpt2 model = small_model();
  const std::string text = sample_text(*model, kBytes, "", {.bytes = 3000});
  EXPECT_GT(std::set<char>(text.begin(), text.end()).size(), 250u);
}

// Words of several bytes end the text only once they are whole; tokens of none do not go on
// forever.
TEST(SampleText, IsTheTextOfWholeTokens) {
  torch::manual_seed(1);
  models::Gpt2 model(models::Gpt2Config{
      .layers = 1, .width = 16, .heads = 2, .context = 8, .vocabulary = 302, .dropout = 0});
  data::BpeDefinition definition = data::small_definition();
  for (auto& [token, id] : definition.vocabulary) {
    if (token == "he") {
      id = 299;
    }
  }
  const data::BpeTokenizer tokenizer(definition);
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    sizes.insert(sample_text(*model, tokenizer, "", {.bytes = 4, .seed = seed}).size());
  }
  EXPECT_TRUE(sizes.contains(4));
  EXPECT_GT(*sizes.rbegin(), 4u);
  EXPECT_LT(*sizes.begin(), 4u);
}

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(printable("To be,\n\tor not"), "To be,\n\tor not");
  EXPECT_EQ(printable("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // a control of its own
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
}

TEST(Generate, NeedsAFinishedRun) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::error_of<UsageError>(
                [&] { generate({.run_directory = folder.path(), .prompt = "", .bytes = 1}); }),
            "--run " + folder.path() +
                ": has no weights.safetensors; name the run folder of a finished lockstep train");
}

}  // namespace
}  // namespace lockstep::train
