#include "comm/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::comm {
namespace {

TEST(CopyBytes, CopiesExactlyWhatItIsTold) {
  for (const std::int64_t bytes : {0, 1, 63, 64, 1000}) {
    std::vector<char> from(1002, 'a');
    std::vector<char> to(1002, 'b');
    copy_bytes(to.data() + 1, from.data() + 1, bytes);
    for (std::int64_t i = 0; i < 1002; ++i) {
      EXPECT_EQ(to[static_cast<std::size_t>(i)], i >= 1 && i <= bytes ? 'a' : 'b') << bytes;
    }
  }
}

TEST(CopyBytes, TakesNothingFromNowhereAndABufferOntoItself) {
  copy_bytes(nullptr, nullptr, 0);
  std::vector<char> buffer(100, 'a');
  copy_bytes(buffer.data(), buffer.data(), 100);
  EXPECT_EQ(buffer, std::vector<char>(100, 'a'));
}

}  // namespace
}  // namespace lockstep::comm
