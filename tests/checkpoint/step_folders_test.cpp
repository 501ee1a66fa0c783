#include "checkpoint/step_folders.h"

#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TemporaryFolder;

TEST(StepFolders, NamesGoThereAndBack) {
  EXPECT_EQ(step_folder_name(20), "step-00000020");
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{99'999'999},
                                  std::int64_t{100'000'000}, std::int64_t{12'345'678'901}}) {
    EXPECT_EQ(step_of(step_folder_name(step)), step);
  }
  for (const char* const other : {"", "step-", "step-20", "step-0000002x", "step--0000020",
                                  "step-000000020", ".step-00000020", "step-00000020.old"}) {
    EXPECT_EQ(step_of(other), std::nullopt) << other;
  }
}

TEST(StepFolders, AreFoundByLooking) {
  const TemporaryFolder folder;
  for (const char* const name :
       {"step-00000020", "step-00000003", "step-100000000", ".step-00000030", "notes", "step-x"}) {
    fs::create_directory(folder.file(name));
  }
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{3, 20, 100'000'000}));
  EXPECT_EQ(unfinished_steps(folder.path()), (std::vector<std::string>{".step-00000030"}));
  EXPECT_EQ(unfinished_name(30), ".step-00000030");
  EXPECT_TRUE(saved_steps(folder.file("none")).empty());
}

TEST(StepFolders, AFileInTheirPlaceIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.write("file", "x");
  EXPECT_EQ(error_of<SystemError>([&] { saved_steps(path); }).find(path), 0u);
}

TEST(FolderLock, HasOneHolder) {
  const TemporaryFolder folder;
  {
    const FolderLock first(folder.path());
    EXPECT_EQ(error_of<Error>([&] { FolderLock second(folder.path()); }),
              folder.path() + ": another process is saving into it; give each run its own folder");
  }
  EXPECT_NO_THROW(FolderLock(folder.path()));
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace lockstep::checkpoint
