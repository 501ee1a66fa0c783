#include "bench/collectives/options.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

CollectivesOptions parse(const Words& words) { return parse_collectives(words, 2); }

TEST(CollectivesOptions, defaults) {
  const CollectivesOptions options = parse({});
  EXPECT_EQ(options.ranks, 2);
  EXPECT_EQ(options.sizes, (std::vector<std::int64_t>{4000, 1'000'000, 25'000'000, 100'000'000}));
  EXPECT_EQ(options.collectives.size(), 3u);
  EXPECT_EQ(options.dtype, Dtype::f32);
  EXPECT_FALSE(options.plain);
  EXPECT_FALSE(options.json);
}

TEST(CollectivesOptions, what_is_given) {
  const CollectivesOptions options = parse({"--ranks", "3", "--sizes", "6", "--ops", "all_gather",
                                            "--dtype", "bf16", "--plain", "--json"});
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.sizes, std::vector<std::int64_t>{6});
  EXPECT_EQ(options.collectives, std::vector<Collective>{Collective::all_gather});
  EXPECT_EQ(options.dtype, Dtype::bf16);
  EXPECT_TRUE(options.plain);
  EXPECT_TRUE(options.json);
}

TEST(CollectivesOptions, help_needs_nothing_else) {
  EXPECT_NE(parse({"--help"}).print.find("--sizes"), std::string::npos);
}

TEST(CollectivesOptions, refusals_name_the_option_and_the_fix) {
  const std::vector<std::pair<Words, std::vector<std::string>>> table{
      {{"--ranks", "1"}, {"--ranks", "from 2 to 1024"}},
      {{"--sizes", "5"}, {"--sizes 5", "multiple of 4"}},
      {{"--sizes", "0"}, {"--sizes 0", "from 1"}},
      {{"--sizes", "4KB,,1MB"}, {"--sizes", "between commas"}},
      {{"--sizes", "100GiB"}, {"--sizes 100GiB", "64GiB"}},
      {{"--ops", "broadcast"}, {"--ops broadcast", "all_reduce"}},
      {{"--dtype", "f64"}, {"--dtype f64", "f32 or bf16"}},
      {{"--algorithms", "native"}, {"--algorithms native", "not built yet", "pairwise"}},
      {{"--algorithms", "fast"}, {"--algorithms fast", "expected words of", "ring"}},
      {{"--peers"}, {"--peers", "not built yet"}},
      {{"--plot", "f.svg"}, {"--plot", "not built yet"}},
      {{"--crossover"}, {"--crossover", "not built yet"}},
      {{"--size", "4KB"}, {"--size", "--sizes"}},
  };
  for (const auto& [words, parts] : table) {
    try {
      parse(words);
      ADD_FAILURE() << words.front() << " was accepted";
    } catch (const UsageError& error) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
            << error.what() << " lacks " << part;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::bench
