#include "train/libtorch.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace lockstep::train {
namespace {

TEST(Libtorch, NamesItsReleaseAndItsLibrary) {
  const auto found = describe_libtorch();
  EXPECT_EQ(found["version"].get<std::string>().find("2."), 0u) << found;
  const std::filesystem::path path = found["path"].get<std::string>();
  EXPECT_EQ(path.filename().string().find("libtorch"), 0u) << found;
  EXPECT_TRUE(std::filesystem::exists(path)) << found;
  EXPECT_FALSE(found["kernels"].get<std::string>().empty());
}

}  // namespace
}  // namespace lockstep::train
