#include "base/environment.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

namespace lockstep::environment {
namespace {

// Sets one variable (or removes it) and puts back what was there.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, std::optional<std::string> value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) {
      before_ = before;
    }
    set(value);
  }
  ~ScopedVariable() { set(before_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
  }
  std::string name_;
  std::optional<std::string> before_;
};

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
    EXPECT_TRUE(std::regex_match(std::string(variable.name), std::regex("[A-Z][A-Z0-9_]*")));
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

TEST_F(SourceText, only_environment_cpp_touches_the_environment) {
  const std::regex access(R"(\b(secure_)?(getenv|setenv|putenv|unsetenv)\s*\(|\benviron\b)");
  std::size_t seen_in_its_file = 0;
  for (const auto& path : sources()) {
    const std::string content = read(path);
    const auto uses = std::distance(std::sregex_iterator(content.begin(), content.end(), access),
                                    std::sregex_iterator());
    if (path.filename() == "environment.cpp") {
      seen_in_its_file += static_cast<std::size_t>(uses);
    } else {
      EXPECT_EQ(uses, 0) << path;
    }
  }
  EXPECT_GE(seen_in_its_file, 2u);  // else the expression finds nothing anywhere
}

TEST_F(SourceText, every_name_read_stands_in_the_table) {
  const std::regex read_call(R"re(environment::(?:text|integer)\(\s*"([A-Z0-9_]+)")re");
  const auto known = names_in_table();
  std::size_t reads = 0;
  for (const auto& path : sources()) {
    const std::string content = read(path);
    for (std::sregex_iterator use(content.begin(), content.end(), read_call), end; use != end;
         ++use) {
      EXPECT_TRUE(known.contains((*use)[1])) << path << " reads " << (*use)[1];
      ++reads;
    }
  }
  EXPECT_GE(reads, 5u);
}

}  // namespace
}  // namespace lockstep::environment
