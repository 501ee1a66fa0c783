#include "train/option_table.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace lockstep::train {
namespace {

const OptionField& field(std::string_view name) {
  const auto fields = option_fields();
  const auto found = std::ranges::find(fields, name, &OptionField::name);
  EXPECT_NE(found, fields.end()) << name;
  return *found;
}

TEST(OptionTable, names_are_unique_and_not_also_unbuilt) {
  std::set<std::string> names;
  for (const OptionField& one : option_fields()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.help.empty()) << one.name;
  }
  for (const NotBuiltOption& one : options_not_built()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_FALSE(one.way_out.empty()) << one.name;
  }
}

TEST(OptionTable, what_is_refused_leaves_the_options_as_they_were) {
  const std::string before = to_toml({});
  for (const OptionField& one : option_fields()) {
    if (one.value == "NAME" || one.value == "FILE" || one.value == "DIR" ||
        one.name == "tokenizer") {
      continue;  // any text will do
    }
    for (const char* const wrong : {"", "?", "-1x", "nan"}) {
      Options options;
      EXPECT_THROW(one.set(options, wrong), UsageError) << one.name << " " << wrong;
      EXPECT_EQ(to_toml(options), before);
    }
  }
}

TEST(OptionTable, bounds_are_where_the_help_says) {
  Options options;
  for (const auto& [name, low, below] : {std::tuple{"ranks", "1", "0"},
                                         {"seq", "1", "0"},
                                         {"steps", "0", "-1"},
                                         {"seed", "0", "-1"},
                                         {"clip", "0", "-1e-300"},
                                         {"dropout", "0.999", "1"},
                                         {"threads", "1", "0"},
                                         {"deadline", "1", "0.5"}}) {
    EXPECT_NO_THROW(field(name).set(options, low)) << name;
    EXPECT_THROW(field(name).set(options, below), UsageError) << name;
  }
}

TEST(OptionTable, values_of_the_documentation_that_are_not_built_say_so) {
  Options options;
  for (const auto& [name, value] : {std::pair{"stage", "hybrid"}, {"algorithm", "ring"}}) {
    try {
      field(name).set(options, value);
      ADD_FAILURE() << name;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("not built yet; use "), std::string::npos);
    }
  }
}

TEST(OptionTable, strings_are_quoted_for_toml) {
  EXPECT_EQ(quoted("plain"), "\"plain\"");
  EXPECT_EQ(quoted("a\"b\\c\n\x7f"), R"("a\"b\\c\u000a\u007f")");
}

}  // namespace
}  // namespace lockstep::train
