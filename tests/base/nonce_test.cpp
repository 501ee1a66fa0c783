#include "base/nonce.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

TEST(Nonce, is_32_hexadecimal_digits_and_never_the_same) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string nonce = random_nonce();
    EXPECT_EQ(nonce.size(), 32u);
    EXPECT_EQ(nonce.find_first_not_of("0123456789abcdef"), std::string::npos) << nonce;
    EXPECT_TRUE(seen.insert(nonce).second) << nonce;
  }
}

}  // namespace
}  // namespace lockstep
