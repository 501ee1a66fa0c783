#include "cli/dash_options.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

TEST(DashOptions, folders_and_a_port_come_in_any_order) {
  const test::TemporaryFolder folder;
  const DashRequest request =
      parse_dash(Words{folder.path(), "--port", "8080", folder.path() + "/."});
  EXPECT_EQ(request.folders, (Words{folder.path(), folder.path() + "/."}));
  EXPECT_EQ(request.port, 8080);
  EXPECT_EQ(parse_dash(Words{folder.path()}).port, 0);
}

TEST(DashOptions, what_is_no_folder_is_named) {
  const test::TemporaryFolder folder;
  for (const std::string& word : {folder.path() + "/none", folder.write("file", "text")}) {
    const std::string error = test::error_of<UsageError>([&] {
      parse_dash(Words{folder.path(), word});
    });
    EXPECT_NE(error.find("'" + word + "' is no folder"), std::string::npos) << error;
  }
}

TEST(DashOptions, unknown_options_and_ports_are_refused) {
  const test::TemporaryFolder folder;
  for (const Words& words : {Words{folder.path(), "--prot=1"}, Words{"--prot", folder.path()},
                             Words{folder.path(), "--port", "70000"}}) {
    const std::string error = test::error_of<UsageError>([&] { parse_dash(words); });
    EXPECT_NE(error.find("--p"), std::string::npos) << error;
  }
}

TEST(DashOptions, help_says_what_a_folder_is) {
  EXPECT_NE(parse_dash(Words{"--help"}).print.find("lockstep dash [FOLDER"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
