// Errors' texts against patterns. By POSIX: std::regex trips GCC's warnings under sanitizers.
#pragma once

#include <gtest/gtest.h>

#include <regex.h>
#include <string>

namespace lockstep::test {

// `pattern` is an extended regular expression that `text` must contain.
inline void expect_match(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  ASSERT_EQ(::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0) << pattern;
  EXPECT_EQ(::regexec(&compiled, text.c_str(), 0, nullptr, 0), 0)
      << "text: " << text << "\npattern: " << pattern;
  ::regfree(&compiled);
}

}  // namespace lockstep::test
