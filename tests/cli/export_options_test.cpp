#include "cli/export_options.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

TEST(ExportOptions, both_folders_arrive) {
  const auto options = parse_export(Words{"--run", "r", "--to", "model"}).options;
  EXPECT_EQ(options.run_directory, "r");
  EXPECT_EQ(options.folder, "model");
}

TEST(ExportOptions, both_folders_are_needed) {
  EXPECT_EQ(test::error_of<UsageError>([] {
              parse_export(Words{"--to", "m"});
            }).find("--run: "),
            0u);
  EXPECT_EQ(test::error_of<UsageError>([] {
              parse_export(Words{"--run", "r"});
            }).find("--to: "),
            0u);
}

TEST(ExportOptions, help_prints) {
  EXPECT_NE(parse_export(Words{"--help"}).print.find("--to"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
