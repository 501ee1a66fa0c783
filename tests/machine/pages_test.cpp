#include "machine/pages.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep::machine {
namespace {

TEST(Pages, AreTheMarkedWord) {
  const test::TemporaryFolder root;
  const std::string folder = "sys/kernel/mm/transparent_hugepage/";
  std::filesystem::create_directories(root.file(folder));
  root.write(folder + "enabled", "always [madvise] never\n");
  root.write(folder + "shmem_enabled", "always within_size advise [never] deny force\n");
  const FileTree files(root.path());
  EXPECT_EQ(private_pages(files), "madvise");
  EXPECT_EQ(shared_pages(files), "never");
  root.write(folder + "enabled", "madvise");
  EXPECT_EQ(private_pages(files), std::nullopt) << "nothing marked";
}

TEST(Pages, AreUnknownWithoutTheKernelsFiles) {
  EXPECT_EQ(private_pages(FileTree("/no/such")), std::nullopt);
  EXPECT_EQ(shared_pages(FileTree("/no/such")), std::nullopt);
}

TEST(Pages, MayBeHugeUnlessForbidden) {
  EXPECT_TRUE(may_use_huge_pages("madvise"));
  EXPECT_TRUE(may_use_huge_pages("advise"));
  EXPECT_TRUE(may_use_huge_pages("within_size"));
  EXPECT_FALSE(may_use_huge_pages("never"));
  EXPECT_FALSE(may_use_huge_pages("deny"));
  EXPECT_TRUE(may_use_huge_pages(std::nullopt)) << "not known";
}

}  // namespace
}  // namespace lockstep::machine
