#include "lockstep/stage.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(Stage, every_name_reads_back_to_its_stage) {
  std::set<std::string_view> names;
  for (const Stage stage : kStages) {
    EXPECT_EQ(stage_named(name_of(stage)), stage);
    names.insert(name_of(stage));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"single", "coordinator", "async", "ddp", "zero1",
                                               "zero2", "zero3", "hybrid"}));
}

TEST(Stage, other_names_are_none) {
  for (const char* name : {"", "?", "DDP", "zero4", "zero", " ddp"}) {
    EXPECT_EQ(stage_named(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace lockstep
