#include "comm/segment.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <limits>

namespace lockstep::comm {
namespace {

std::int64_t bytes_taken(const Segment& segment) {
  struct stat status {};
  EXPECT_EQ(::fstat(segment.descriptor(), &status), 0);
  return status.st_blocks * 512;
}

TEST(Segment, is_zeroed_and_sparse_until_reserved) {
  const std::int64_t page = page_bytes();
  const auto segment = Segment::create(8 * page);
  EXPECT_EQ(bytes_taken(*segment), 0);
  segment->reserve(2 * page, 3 * page);
  EXPECT_EQ(bytes_taken(*segment), 3 * page);
  segment->populate();
  for (std::int64_t i = 0; i < segment->bytes(); ++i) {
    ASSERT_EQ(segment->data()[i], std::byte{0});
  }
}

TEST(Segment, two_mappings_of_one_descriptor_share) {
  const auto first = Segment::create(page_bytes());
  const auto second = Segment::adopt(FileDescriptor(::dup(first->descriptor())), page_bytes());
  ASSERT_NE(first->data(), second->data());
  first->data()[7] = std::byte{42};
  EXPECT_EQ(second->data()[7], std::byte{42});
}

TEST(Segment, does_not_pass_to_other_programs) {
  const auto segment = Segment::create(page_bytes());
  EXPECT_NE(::fcntl(segment->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Segment, a_size_that_cannot_be_is_a_system_error_with_the_number) {
  try {
    Segment::create(std::numeric_limits<std::int64_t>::max());
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("9223372036854775807"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::comm
