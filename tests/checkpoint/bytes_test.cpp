#include "checkpoint/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace lockstep::checkpoint {
namespace {

// xxhsum -H2 prints these.
TEST(HashOf, IsXxh3WithItsPublishedValues) {
  EXPECT_EQ(hash_of(bytes_of("")), "99aa06d3014798d86001c324468d497f");
}

TEST(HashOf, DoesNotHangOnThePieces) {
  const std::string text(5000, 'x');
  const std::string whole = hash_of(bytes_of(text));
  for (const std::size_t cut : {0u, 1u, 255u, 4999u, 5000u}) {
    const std::array pieces{bytes_of(text).first(cut), bytes_of(text).subspan(cut)};
    EXPECT_EQ(hash_of(pieces), whole) << cut;
  }
  std::string other = text;
  other[4321] = 'y';
  EXPECT_NE(hash_of(bytes_of(other)), whole);
}

}  // namespace
}  // namespace lockstep::checkpoint
