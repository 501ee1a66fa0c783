#include "cli/hardware.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

const std::string kText = R"(name = "x"
description = "d"
source = "s"  # a comment
ranks_per_host = 2
memory = "16GiB"
host_memory = "shared"
f32_tflops = 0.1
bf16_tflops = 0.2
reached = 0.5
memory_gb_per_s = 20
inside_latency_us = 3
inside_gb_per_s = 10
between_latency_us = 50
between_gb_per_s = 1.25
)";

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Hardware, every_built_in_machine_is_whole_and_says_where_its_figures_come_from) {
  const auto names = hardware_names();
  for (const char* const name : {"a100", "h100", "h200"}) {
    EXPECT_TRUE(std::ranges::find(names, name) != names.end()) << name;
  }
  for (const std::string& name : names) {
    const plan::Hardware hardware = hardware_of(name);
    EXPECT_EQ(hardware.name, name);
    EXPECT_GT(hardware.source.size(), 20u);
    EXPECT_GE(hardware.bf16_flops, 1e9);
    EXPECT_LE(hardware.inside.latency_s, 1e-3);
    EXPECT_GE(hardware.inside.bytes_per_s, 1e8);
  }
}

TEST(Hardware, units_are_those_that_the_keys_name) {
  const plan::Hardware hardware = parse_hardware(kText, "here");
  EXPECT_EQ(hardware.ranks_per_host, 2);
  EXPECT_EQ(hardware.memory_bytes, std::int64_t{16} << 30);
  EXPECT_EQ(hardware.host_memory, plan::HostMemory::shared);
  EXPECT_DOUBLE_EQ(hardware.f32_flops, 1e11);
  EXPECT_DOUBLE_EQ(hardware.inside.latency_s, 3e-6);
  EXPECT_DOUBLE_EQ(hardware.between.bytes_per_s, 1.25e9);
}

TEST(Hardware, a_file_of_the_user_is_read) {
  const test::TemporaryFolder folder;
  folder.write("mine.toml", kText);
  EXPECT_EQ(hardware_of(folder.file("mine.toml")).name, "x");
}

void expect_refused(const std::string& text, const std::string& names, const std::string& hint) {
  try {
    parse_hardware(text, "--hardware x.toml");
    ADD_FAILURE() << "expected a refusal naming " << names;
  } catch (const UsageError& error) {
    const std::string line = error.what();
    EXPECT_TRUE(line.starts_with("--hardware x.toml")) << line;
    EXPECT_NE(line.find(names), std::string::npos) << line;
    EXPECT_NE(line.find(hint), std::string::npos) << line;
  }
}

TEST(Hardware, what_a_file_lacks_or_says_wrong_is_named) {
  expect_refused(replaced("reached = 0.5\n", ""), "reached", "is missing");
  expect_refused(replaced("reached = 0.5", "reached = 1.5"), "line 9: reached", "at most 1");
  expect_refused(replaced("reached = 0.5", "reached = nan"), "reached", "above 0");
  expect_refused(replaced("host_memory = \"shared\"", "host_memory = \"one\""), "host_memory",
                 "\"shared\" or \"separate\"");
  expect_refused(replaced("ranks_per_host = 2", "ranks_per_host = 0"), "ranks_per_host",
                 "from 1 to 1024");
  expect_refused(replaced("memory = \"16GiB\"", "memory = \"much\""), "memory", "\"80GB\"");
  expect_refused(kText + "inside_gbps = 3\n", "inside_gbps", "unknown key");
  expect_refused("[hardware]\n", "line 1", "expected key = value");
}

TEST(Hardware, unknown_names_are_refused_with_the_known_ones) {
  try {
    hardware_of("h1000");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean h100?"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("a100"), std::string::npos);
  }
  EXPECT_THROW(hardware_of("/no/such.toml"), UsageError);
}

}  // namespace
}  // namespace lockstep::cli
