#include "base/invariant.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::string message_of_broken(std::int64_t held, std::int64_t allowed) {
  try {
    LOCKSTEP_INVARIANT(held, <=, allowed);
  } catch (const InvariantBroken& broken) {
    return broken.what();
  }
  return "";
}

TEST(Invariant, says_where_what_and_both_operands) {
  const std::string message = message_of_broken(7, 5);
  EXPECT_NE(message.find("invariant_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("held <= allowed"), std::string::npos) << message;
  EXPECT_NE(message.find("7 against 5"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(Invariant, small_integers_print_as_numbers) {
  try {
    LOCKSTEP_INVARIANT(std::uint8_t{65}, ==, std::uint8_t{66});
    FAIL();
  } catch (const InvariantBroken& broken) {
    EXPECT_NE(std::string(broken.what()).find("65 against 66"), std::string::npos);
  }
}

TEST(Invariant, that_holds_evaluates_its_operands_once) {
  int evaluated = 0;
  LOCKSTEP_INVARIANT(++evaluated, ==, 1);
  EXPECT_EQ(evaluated, 1);
  EXPECT_EQ(message_of_broken(5, 5), "");
}

}  // namespace
}  // namespace lockstep
