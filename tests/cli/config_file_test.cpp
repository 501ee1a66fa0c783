#include "cli/config_file.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"
#include "train/option_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

std::vector<ConfigEntry> entries_of(const std::string& text) {
  const test::TemporaryFolder folder;
  return read_config(folder.write("test.toml", text));
}

std::string value_of(const std::string& toml) {
  const auto entries = entries_of("key = " + toml + "\n");
  return entries.size() == 1 && entries[0].key == "key" ? entries[0].value : "(not one entry)";
}

std::string refusal(const std::string& text) {
  try {
    entries_of(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigFile, reads_what_toml_means) {
  EXPECT_EQ(value_of("3e-4"), "3e-4");
  EXPECT_EQ(value_of("true # yes"), "true");
  EXPECT_EQ(value_of("\"a # b\" # c"), "a # b");
  EXPECT_EQ(value_of("'C:\\new'"), "C:\\new");
  EXPECT_EQ(value_of("\"\""), "");
  EXPECT_EQ(value_of(R"("tab\tquote\"back\\line\nbell\u0007 \u00e9\u20ac")"),
            "tab\tquote\"back\\line\nbell\x07 é€");
}

TEST(ConfigFile, skips_comments_and_blank_lines_and_counts_lines) {
  const auto entries = entries_of("# one\n\n  \t\r\na=1\r\n  b  =  2  \n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].key, "a");
  EXPECT_EQ(entries[0].value, "1");
  EXPECT_EQ(entries[0].line, 4);
  EXPECT_EQ(entries[1].key, "b");
  EXPECT_EQ(entries[1].value, "2");
  EXPECT_EQ(entries[1].line, 5);
  EXPECT_TRUE(entries_of("").empty());
}

TEST(ConfigFile, what_is_no_small_regular_file_is_refused_without_waiting) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string large = folder.write("large", std::string((1 << 20) + 1, '#'));
  for (const std::string& path :
       {pipe, large, std::string("/dev/zero"), std::string("/proc/self/mem"), std::string("/tmp"),
        std::string("/nowhere")}) {
    try {
      read_config(path);
      ADD_FAILURE() << path << " was read";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find("--config " + path + ": "), 0u) << error.what();
    }
  }
}

TEST(ConfigFile, refusals_name_file_and_line) {
  for (const char* const text :
       {"x = 1\n[part]\n", "x = 1\nword\n", "x = 1\ny =\n", "x = 1\ny = # 2\n",
        "x = 1\ny = \"open\n", "x = 1\ny = 'open\n", "x = 1\ny = \"\\q\"\n",
        "x = 1\ny = \"\\u12\"\n", "x = 1\ny = \"a\" b\n", "x = 1\ny = \"\\"}) {
    const std::string said = refusal(text);
    EXPECT_TRUE(said.starts_with("--config ")) << said;
    EXPECT_NE(said.find("/test.toml line 2: "), std::string::npos) << text << said;
  }
}

TEST(ConfigFile, reads_back_every_byte_that_is_quoted) {
  std::string all;
  for (int code = 1; code < 256; ++code) {
    all.push_back(static_cast<char>(code));
  }
  EXPECT_EQ(value_of(train::quoted(all)), all);
}

}  // namespace
}  // namespace lockstep::cli
