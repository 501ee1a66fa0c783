#include "base/environment.h"

#include "lockstep/error.h"
#include "support/scoped_variable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace lockstep::environment {
namespace {

using test::ScopedVariable;

std::set<std::string> names_in_table() {
  std::set<std::string> names;
  for (const Variable& variable : table()) {
    names.emplace(variable.name);
  }
  return names;
}

TEST(Environment, the_table_is_complete_and_without_repeats) {
  EXPECT_EQ(names_in_table().size(), table().size());
  for (const Variable& variable : table()) {
    EXPECT_FALSE(variable.set_by.empty()) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
    EXPECT_EQ(variable.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
              std::string_view::npos);
  }
}

TEST(Environment, unset_and_empty_are_both_nothing) {
  const ScopedVariable unset("LOCKSTEP_DEADLINE", std::nullopt);
  EXPECT_EQ(text("LOCKSTEP_DEADLINE"), std::nullopt);
  EXPECT_EQ(integer("LOCKSTEP_DEADLINE"), std::nullopt);
  const ScopedVariable empty("LOCKSTEP_DEADLINE", "");
  EXPECT_EQ(text("LOCKSTEP_DEADLINE"), std::nullopt);
  EXPECT_EQ(integer("LOCKSTEP_DEADLINE"), std::nullopt);
}

TEST(Environment, values_are_read_at_each_call) {
  const ScopedVariable first("RANK", "3");
  EXPECT_EQ(text("RANK"), "3");
  EXPECT_EQ(integer("RANK"), 3);
  const ScopedVariable second("RANK", "-12");
  EXPECT_EQ(integer("RANK"), -12);
}

TEST(Environment, garbage_is_an_error_that_names_variable_and_value) {
  for (const char* garbage :
       {"two", "3x", " 3", "3 ", "1.5", "0x10", "99999999999999999999", "+"}) {
    const ScopedVariable variable("WORLD_SIZE", garbage);
    try {
      integer("WORLD_SIZE");
      ADD_FAILURE() << "accepted '" << garbage << "'";
    } catch (const UsageError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("WORLD_SIZE"), std::string::npos) << message;
      EXPECT_NE(message.find(garbage), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(Environment, a_name_outside_the_table_breaks_an_invariant) {
  EXPECT_THROW(text("LOCKSTEP_UNHEARD_OF"), InvariantBroken);
  EXPECT_THROW(integer("LOCKSTEP_UNHEARD_OF"), InvariantBroken);
}

TEST(Environment, inherited_lists_all_variables) {
  const ScopedVariable known("RANK", "5");
  const ScopedVariable unknown("SOMETHING_OF_THE_USER", "a=b");
  const auto all = inherited();
  EXPECT_EQ(std::ranges::count(all, "RANK=5"), 1);
  EXPECT_EQ(std::ranges::count(all, "SOMETHING_OF_THE_USER=a=b"), 1);
}

TEST(Environment, a_childs_own_variables_replace_what_it_inherits) {
  const ScopedVariable replaced("RANK", "5");
  const ScopedVariable kept("RANKS_OF_THE_USER", "7");
  const auto all = inherited_with({"RANK=6", "NEW=a=b"});
  EXPECT_EQ(std::ranges::count(all, "RANK=5"), 0);
  for (const char* const variable : {"RANK=6", "NEW=a=b", "RANKS_OF_THE_USER=7"}) {
    EXPECT_EQ(std::ranges::count(all, variable), 1) << variable;
  }
  EXPECT_EQ(all.size(), inherited().size() + 1);
}

TEST(Environment, the_cache_folder_comes_from_the_first_variable_that_is_set) {
  const ScopedVariable own("LOCKSTEP_CACHE", "/tmp/own");
  const ScopedVariable xdg("XDG_CACHE_HOME", "/tmp/xdg");
  const ScopedVariable home("HOME", "/tmp/home");
  EXPECT_EQ(cache_directory(), "/tmp/own");
  const ScopedVariable no_own("LOCKSTEP_CACHE", std::nullopt);
  EXPECT_EQ(cache_directory(), "/tmp/xdg/lockstep");
  const ScopedVariable no_xdg("XDG_CACHE_HOME", "");
  EXPECT_EQ(cache_directory(), "/tmp/home/.cache/lockstep");
  const ScopedVariable no_home("HOME", std::nullopt);
  EXPECT_THROW(cache_directory(), UsageError);
}

// The project's own text: reads happen in one file, of names in one table.
class SourceText : public ::testing::Test {
 protected:
  static std::string read(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::vector<std::filesystem::path> sources() {
    std::vector<std::filesystem::path> found;
    for (const char* folder : {"src", "include"}) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(
               std::filesystem::path(LOCKSTEP_SOURCE_DIR) / folder)) {
        if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h") {
          found.push_back(entry.path());
        }
      }
    }
    return found;
  }
};

// How often a word stands in a text, not as part of a longer one.
std::size_t count_word(const std::string& content, const std::string& word) {
  const auto joins = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::size_t count = 0;
  for (auto at = content.find(word); at != std::string::npos; at = content.find(word, at + 1)) {
    const auto end = at + word.size();
    const bool starts = at == 0 || !joins(content[at - 1]);
    count += starts && (end == content.size() || !joins(content[end])) ? 1 : 0;
  }
  return count;
}

TEST_F(SourceText, only_environment_cpp_touches_the_environment) {
  std::size_t seen_in_its_file = 0;
  for (const auto& path : sources()) {
    const std::string content = read(path);
    for (const char* word :
         {"getenv", "secure_getenv", "setenv", "putenv", "unsetenv", "environ"}) {
      const std::size_t uses = count_word(content, word);
      if (path.filename() == "environment.cpp") {
        seen_in_its_file += uses;
      } else {
        EXPECT_EQ(uses, 0u) << path << ": " << word;
      }
    }
  }
  EXPECT_GE(seen_in_its_file, 2u);  // else nothing would be found anywhere
}

// The names written out in calls of `function`, e.g. environment::text("NAME").
std::vector<std::string> literals_given_to(const std::string& function,
                                           const std::string& content) {
  std::vector<std::string> literals;
  for (auto at = content.find(function); at != std::string::npos;
       at = content.find(function, at + 1)) {
    const auto begin = content.find_first_not_of(" \n", at + function.size());
    if (begin != std::string::npos && content[begin] == '"') {
      literals.push_back(content.substr(begin + 1, content.find('"', begin + 1) - begin - 1));
    }
  }
  return literals;
}

TEST_F(SourceText, every_name_read_stands_in_the_table) {
  const auto known = names_in_table();
  std::size_t reads = 0;
  for (const auto& path : sources()) {
    const std::string content = read(path);
    for (const char* function : {"environment::text(", "environment::integer("}) {
      for (const std::string& name : literals_given_to(function, content)) {
        EXPECT_TRUE(known.contains(name)) << path << " reads " << name;
        ++reads;
      }
    }
  }
  EXPECT_GE(reads, 5u);
}

}  // namespace
}  // namespace lockstep::environment
