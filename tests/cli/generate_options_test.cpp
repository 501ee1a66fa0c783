#include "cli/generate_options.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

TEST(GenerateOptions, every_option_arrives) {
  const auto options = parse_generate(Words{"--run", "r", "--prompt", "-- To be", "--bytes", "2KB",
                                            "--seed", "7", "--temperature", "0"})
                           .options;
  EXPECT_EQ(options.run_directory, "r");
  EXPECT_EQ(options.prompt, "-- To be");
  EXPECT_EQ(options.bytes, 2000);
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.temperature, 0);
}

TEST(GenerateOptions, only_the_run_is_needed) {
  const auto options = parse_generate(Words{"--run", "r"}).options;
  EXPECT_EQ(options.prompt, "");
  EXPECT_EQ(options.bytes, 200);
  EXPECT_EQ(options.seed, 1u);
  EXPECT_EQ(options.temperature, 1);
  EXPECT_THROW(parse_generate(Words{}), UsageError);
  EXPECT_THROW(parse_generate(Words{"--run="}), UsageError);
}

}  // namespace
}  // namespace lockstep::cli
