#include "data/tokenizer_json.h"

#include "checkpoint/mapped_file.h"
#include "data/vocabulary.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

// A value of the file and the way to it, "model.vocab", which errors name.
class Field {
 public:
  Field(const std::string& file, std::string name, const Json& value)
      : file_(file), name_(std::move(name)), value_(value) {}

  const Json& value() const { return value_; }
  // Absent members are null, as the files' own readers have it.
  Field operator[](const char* member) const {
    static const Json kNull;
    const auto found = value_.find(member);  // none in what is no object
    return {file_, name_.empty() ? member : name_ + "." + member,
            found == value_.end() ? kNull : *found};
  }
  std::vector<Field> elements() const {
    if (!value_.is_array()) {
      refuse("a list");
    }
    std::vector<Field> fields;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      fields.emplace_back(file_, name_ + "[" + std::to_string(i) + "]", value_[i]);
    }
    return fields;
  }
  std::string text() const {
    if (!value_.is_string()) {
      refuse("a text");
    }
    return value_.get<std::string>();
  }
  bool flag(bool absent) const {
    if (!value_.is_null() && !value_.is_boolean()) {
      refuse("true or false");
    }
    return value_.is_null() ? absent : value_.get<bool>();
  }
  std::string where() const { return file_ + ": " + name_; }

  [[noreturn]] void refuse(const std::string& expected) const {
    constexpr std::size_t kShown = 100;
    std::string got = value_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > kShown) {
      got = got.substr(0, kShown) + "…";
    }
    throw UsageError("--tokenizer " + where() + ": only " + expected + " is supported, got " + got);
  }

 private:
  const std::string& file_;
  std::string name_;
  const Json& value_;
};

struct KnownPattern {
  std::string_view regex;
  WordRule rule;
};
constexpr std::array kPatterns{
    KnownPattern{R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                 WordRule::gpt2},
    KnownPattern{R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                 WordRule::gpt2},
    KnownPattern{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                 R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
                 WordRule::llama3},
    KnownPattern{R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                 R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
                 WordRule::qwen2},
    KnownPattern{R"(\p{N})", WordRule::each_digit},
    KnownPattern{R"(\p{N}+)", WordRule::digit_runs}};

WordRule split_rule(const Field& step) {
  const Field pattern = step["pattern"]["Regex"];
  for (const KnownPattern& known : kPatterns) {
    if (pattern.value().is_string() && pattern.text() == known.regex) {
      if (step["behavior"].value() != "Isolated") {
        step["behavior"].refuse("\"Isolated\"");
      }
      if (step["invert"].flag(false)) {
        step["invert"].refuse("false");
      }
      return known.rule;
    }
  }
  step["pattern"].refuse("a regular expression of GPT-2, Llama 3, Qwen 2 or for digits");
}

// `step` is the last one: what follows it would see characters that stand for bytes.
void add_byte_level(const Field& step, WordRules& rules) {
  rules.space_in_front = step["add_prefix_space"].flag(true);
  if (step["use_regex"].flag(true)) {
    rules.inner = WordRule::gpt2;
  }
}

WordRules word_rules(const Field& field) {
  const bool sequence = field["type"].value() == "Sequence";
  const std::vector<Field> steps =
      sequence ? field["pretokenizers"].elements() : std::vector<Field>{field};
  WordRules rules;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Field type = steps[i]["type"];
    if (type.value() == "ByteLevel" && i + 1 == steps.size()) {
      add_byte_level(steps[i], rules);
      return rules;
    }
    if (type.value() == "Split") {
      rules.outer.push_back(split_rule(steps[i]));
    } else if (type.value() == "Digits") {
      rules.outer.push_back(steps[i]["individual_digits"].flag(false) ? WordRule::each_digit
                                                                      : WordRule::digit_runs);
    } else {
      type.refuse("Split, Digits and, at the end, ByteLevel");
    }
  }
  field.refuse("a sequence that ends with ByteLevel");
}

std::vector<std::pair<std::string, std::string>> read_merges(const Field& field) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Field& entry : field.elements()) {
    const Json& value = entry.value();
    if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
      merges.emplace_back(value[0].get<std::string>(), value[1].get<std::string>());
    } else if (auto merge = value.is_string() ? merge_of(entry.text()) : std::nullopt) {
      merges.push_back(std::move(*merge));
    } else {
      entry.refuse("a pair of tokens");
    }
  }
  return merges;
}

void read_model(const Field& model, BpeDefinition& definition) {
  if (model["type"].value() != "BPE") {
    model["type"].refuse("\"BPE\"");
  }
  if (!model["dropout"].value().is_null() && model["dropout"].value() != 0.0) {
    model["dropout"].refuse("null");
  }
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[name].value().is_null() && model[name].value() != "") {
      model[name].refuse("null");
    }
  }
  if (model["byte_fallback"].flag(false)) {
    model["byte_fallback"].refuse("false");
  }
  definition.whole_words_first = model["ignore_merges"].flag(false);
  definition.vocabulary = vocabulary_of(model["vocab"].value(), model["vocab"].where());
  definition.merges = read_merges(model["merges"]);
}

void read_added_tokens(const Field& list, BpeDefinition& definition) {
  if (list.value().is_null()) {
    return;
  }
  for (const Field& token : list.elements()) {
    for (const char* name : {"single_word", "lstrip", "rstrip"}) {
      if (token[name].flag(false)) {
        token[name].refuse("false");
      }
    }
    const AddedToken added{token["content"].text(),
                           id_of(token["id"].value(), token["id"].where())};
    if (!added.text.empty()) {
      (token["normalized"].flag(true) ? definition.added_later : definition.added).push_back(added);
    }
  }
}

}  // namespace

BpeDefinition read_tokenizer_json(const std::string& path) {
  const checkpoint::MappedFile file(path);
  const Json json = parse_json(path, file.bytes());
  const Field root(path, "", json);
  if (!root["normalizer"].value().is_null()) {
    root["normalizer"].refuse("null");
  }
  BpeDefinition definition;
  definition.spec = std::filesystem::absolute(path).string();
  definition.file = path;
  definition.identity = XXH3_64bits(file.bytes().data(), file.bytes().size());
  read_model(root["model"], definition);
  definition.words = word_rules(root["pre_tokenizer"]);
  read_added_tokens(root["added_tokens"], definition);
  return definition;
}

}  // namespace lockstep::data
