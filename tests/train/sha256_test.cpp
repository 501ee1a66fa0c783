#include "train/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

namespace lockstep::train {
namespace {

std::string hash_of(std::string_view text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hex(hash.finish());
}

// Values of FIPS 180-2, appendix B.
TEST(Sha256, HasTheStandardsValues) {
  EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TakesBytesInPieces) {
  Sha256 hash;
  hash.update("a", 1);
  hash.update("", 0);
  hash.update("bc", 2);
  EXPECT_EQ(hex(hash.finish()), hash_of("abc"));
}

}  // namespace
}  // namespace lockstep::train
