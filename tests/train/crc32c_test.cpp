#include "train/crc32c.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <string>

namespace lockstep::train {
namespace {

// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
TEST(Crc32c, GivesTheKnownAnswers) {
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  const std::string descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cu);
}

TEST(MaskedCrc32c, IsRotatedAndShifted) {
  for (const char* text : {"", "a", "123456789"}) {
    const std::uint32_t unmasked = std::rotl(masked_crc32c(text) - 0xa282ead8u, 15);
    EXPECT_EQ(unmasked, crc32c(text)) << text;
  }
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
}

}  // namespace
}  // namespace lockstep::train
